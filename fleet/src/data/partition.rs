//! The partition of a pool's samples among nodes and rounds.

use std::ops::Range;

use rand::RngExt;
use rand::seq::SliceRandom;

use super::power_law::{power_law_parts, power_law_sizes};
use super::published_split::PublishedSplit;
use super::random::{RandomPurpose, generator};
use super::{AsPublished, SamplePool};

/// The terms of a partition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PartitionConfig {
    /// The authority on the order of samples.
    pub(crate) as_published: AsPublished,
    /// N.
    pub(crate) nodes: usize,
    /// Rounds, with the one after the last.
    pub(crate) rounds: usize,
    /// Samples of a node's batch, on average.
    pub(crate) batch: usize,
    /// The sizes of batches.
    pub(crate) sizes: BatchSizes,
    /// The published code's split, where the data set has one.
    pub(crate) split: Option<PublishedSplit>,
    /// Seed of the order.
    pub(crate) seed: u64,
}

/// The sizes of nodes' batches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum BatchSizes {
    /// Equal.
    Equal,
    /// By a power law of this weight, from 0 to 1.
    PowerLaw(f64),
    /// The last nodes' are smaller.
    Fewer {
        /// How many of them.
        nodes: usize,
        /// The share of a batch that they lack.
        share: f64,
    },
}

impl PartitionConfig {
    /// Samples that are used at most.
    pub(crate) fn samples_max(&self) -> usize {
        let a_round = match (self.as_published, self.split) {
            (AsPublished::Code, Some(split)) => split.length_max(self.nodes, self.batch),
            _ => self.nodes.saturating_mul(self.batch),
        };
        a_round.saturating_mul(self.rounds)
    }
}

/// A class without any sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EmptyClass(pub(crate) u32);

/// The samples of each node in each round.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Partition {
    nodes: usize,
    /// Samples in the pool, round by round, and node by node within a round.
    order: Vec<u32>,
    /// The end of each batch in `order`, in the same order.
    ends: Vec<usize>,
    /// Passes through the pool.
    pub(crate) passes: usize,
}

impl Partition {
    /// Partitions the pool as the paper or the published code does.
    pub(crate) fn new(pool: &SamplePool, config: &PartitionConfig) -> Self {
        match (&pool.owners, config.as_published) {
            (Some(owners), _) => Self::to_owners(owners, config),
            (None, AsPublished::Paper) => Self::shuffled(pool.len(), config),
            (None, AsPublished::Code) => Self::in_order(pool, config),
        }
    }

    /// "Uniformly at random": every node has a part of the shuffled pool, as large as its batches ask for, and takes batches
    /// from it in an order that is another in each pass.
    fn shuffled(samples: usize, config: &PartitionConfig) -> Self {
        let sizes = sizes(config);
        let all: usize = sizes.iter().sum();
        let mut order: Vec<usize> = (0..samples).collect();
        order.shuffle(&mut generator(config.seed, RandomPurpose::Order, 0, 0));
        let mut before = 0;
        let mut parts = Vec::with_capacity(sizes.len());
        for (node, size) in sizes.iter().enumerate() {
            let (start, end) = (samples * before / all.max(1), samples * (before + size) / all.max(1));
            // Where there are fewer samples than nodes, some have one in common.
            let own =
                if start < end { start..end } else { start.min(samples - 1)..start.min(samples - 1) + 1 };
            parts.push(Passes::new(order[own].to_vec(), config.seed, node + 1));
            before += size;
        }
        let mut partition = Self::empty(config.nodes);
        for _ in 0..config.rounds {
            for (part, size) in parts.iter_mut().zip(&sizes) {
                partition.push(part.take(*size));
            }
        }
        partition.passes = parts.iter().map(|part| part.begun).max().unwrap_or(0);
        partition
    }

    /// "Sequential, unshuffled": the whole recording is cut into steps and each step into N parts, both as
    /// `numpy.array_split` does; after the last step, the first follows.
    fn in_order(pool: &SamplePool, config: &PartitionConfig) -> Self {
        let recorded = pool.recorded.max(pool.len());
        let (steps, floor) = match config.split {
            Some(split) => (split.steps(recorded, config.nodes, config.batch), split.floor),
            None => (recorded.div_ceil((config.nodes * config.batch).max(1)).max(1), false),
        };
        let used = if floor { recorded / steps * steps } else { recorded };
        let mut partition = Self::empty(config.nodes);
        for round in 0..config.rounds {
            let step = split(used, steps, round % steps);
            let parts: Vec<Range<usize>> = match config.sizes {
                BatchSizes::PowerLaw(level) => power_law_parts(step.len(), config.nodes, level),
                BatchSizes::Equal | BatchSizes::Fewer { .. } => {
                    (0..config.nodes).map(|node| split(step.len(), config.nodes, node)).collect()
                }
            };
            for part in parts {
                // A step may have fewer samples than there are nodes; every node gets one.
                let part = if part.is_empty() { 0..1 } else { part };
                partition.push(part.map(|at| (step.start + at) % pool.len()));
            }
        }
        partition.passes = config.rounds.div_ceil(steps);
        partition
    }

    /// Each node has the readings of one owner, in the order of time.
    fn to_owners(owners: &[Range<usize>], config: &PartitionConfig) -> Self {
        let sizes = sizes(config);
        let owners: Vec<&Range<usize>> = owners.iter().filter(|range| !range.is_empty()).collect();
        let mut partition = Self::empty(config.nodes);
        for round in 0..config.rounds {
            for (owner, size) in owners.iter().zip(&sizes) {
                partition.push((round * size..(round + 1) * size).map(|at| owner.start + at % owner.len()));
            }
        }
        let passes =
            owners.iter().zip(&sizes).map(|(owner, size)| (config.rounds * size).div_ceil(owner.len()));
        partition.passes = passes.max().unwrap_or(0);
        partition
    }

    /// Node by node from the samples of its classes, each class equally often. `labels` has the class of every sample of
    /// the pool, out of `count`.
    pub(crate) fn by_classes(
        (labels, count): (&[u32], u32),
        config: &PartitionConfig,
        classes: &[Vec<u32>],
    ) -> Result<Self, EmptyClass> {
        let mut members = vec![Vec::new(); count as usize];
        labels.iter().enumerate().for_each(|(at, class)| members[*class as usize].push(at));
        if let Some(class) = members.iter().position(Vec::is_empty) {
            return Err(EmptyClass(class as u32));
        }
        let mut passes = Vec::new();
        let mut choices = Vec::new();
        for (node, classes) in classes.iter().enumerate() {
            let each = classes.iter().map(|class| {
                let stream = node * count as usize + *class as usize + 1;
                Passes::new(members[*class as usize].clone(), config.seed, stream)
            });
            passes.push(each.collect::<Vec<_>>());
            choices.push(generator(config.seed, RandomPurpose::Classes, node, 1));
        }
        let mut partition = Self::empty(config.nodes);
        for _ in 0..config.rounds {
            for (passes, choice) in passes.iter_mut().zip(&mut choices) {
                let batch = (0..config.batch).filter_map(|_| {
                    let class = choice.random_range(0..passes.len());
                    passes[class].next()
                });
                partition.push(batch.collect::<Vec<_>>().into_iter());
            }
        }
        partition.passes = passes.iter().flatten().map(|passes| passes.begun).max().unwrap_or(0);
        Ok(partition)
    }

    fn empty(nodes: usize) -> Self {
        Self { nodes, order: Vec::new(), ends: Vec::new(), passes: 0 }
    }

    fn push(&mut self, batch: impl Iterator<Item = usize>) {
        self.order.extend(batch.map(|at| at as u32));
        self.ends.push(self.order.len());
    }

    pub(crate) fn rounds(&self) -> u32 {
        (self.ends.len() / self.nodes) as u32
    }

    /// The number of samples in all batches.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Positions of a node's batch; none outside the partitioned rounds.
    pub(crate) fn range(&self, node: usize, round: u32) -> Range<usize> {
        let known = node < self.nodes && (1..=self.rounds()).contains(&round);
        if !known {
            return 0..0;
        }
        let batch = (round as usize - 1) * self.nodes + node;
        let start = if batch == 0 { 0 } else { self.ends[batch - 1] };
        start..self.ends[batch]
    }

    /// The samples of a node's batch.
    pub(crate) fn of(&self, node: usize, round: u32) -> &[u32] {
        &self.order[self.range(node, round)]
    }

    /// The samples of all nodes in a round.
    pub(crate) fn all(&self, round: u32) -> &[u32] {
        &self.order[self.range(0, round).start..self.range(self.nodes - 1, round).end]
    }
}

/// The batch sizes of all nodes in each round.
fn sizes(config: &PartitionConfig) -> Vec<usize> {
    match config.sizes {
        BatchSizes::Equal => vec![config.batch; config.nodes],
        BatchSizes::PowerLaw(level) => power_law_sizes(config.batch, config.nodes, level),
        BatchSizes::Fewer { nodes, share } => {
            let fewer = ((1.0 - share) * config.batch as f64).round().max(1.0) as usize;
            (0..config.nodes)
                .map(|node| if node + nodes < config.nodes { config.batch } else { fewer })
                .collect()
        }
    }
}

/// Part `at` of `parts` of 0..`length`, as `numpy.array_split` cuts: the first `length mod parts` are one longer.
pub(crate) fn split(length: usize, parts: usize, at: usize) -> Range<usize> {
    let (size, longer) = (length / parts, length % parts);
    let start = at * size + at.min(longer);
    start..start + size + usize::from(at < longer)
}

/// Endless passes through samples, each in another order.
struct Passes {
    samples: Vec<usize>,
    next: usize,
    begun: usize,
    seed: u64,
    stream: usize,
}

impl Passes {
    fn new(samples: Vec<usize>, seed: u64, stream: usize) -> Self {
        Self { next: samples.len(), samples, begun: 0, seed, stream }
    }
}

impl Iterator for Passes {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.next == self.samples.len() {
            let mut generator = generator(self.seed, RandomPurpose::Order, self.stream, self.begun as u32);
            self.samples.shuffle(&mut generator);
            self.next = 0;
            self.begun += 1;
        }
        self.next += 1;
        self.samples.get(self.next - 1).copied()
    }
}
