//! Samples dealt out to nodes and rounds.

use std::ops::Range;

use rand::RngExt;
use rand::seq::SliceRandom;

use super::{Purpose, StreamError, generator, quality};
use crate::corruption::Corruption;
use crate::data::{Answers, Dataset, Pool};
use crate::experiment::setup::{AsPublished, Setup};

/// Which samples each node has in each round.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Deal {
    nodes: usize,
    /// Samples in the pool, round by round, and node by node within a round.
    order: Vec<u32>,
    /// Where in `order` each batch ends, in the same order.
    ends: Vec<usize>,
    /// How often the pool is gone through.
    pub(super) passes: usize,
}

impl Deal {
    /// Deals the pool out as the paper or the published code does.
    pub(super) fn new(pool: &Pool, setup: &Setup) -> Self {
        match (&pool.owners, setup.as_published) {
            (Some(owners), _) => Self::to_owners(owners, setup),
            (None, AsPublished::Paper) => Self::shuffled(pool.len(), setup),
            (None, AsPublished::Code) => Self::in_order(pool, setup),
        }
    }

    /// "Random splits": batches of a shuffled pool, which is shuffled anew when it is used up.
    fn shuffled(samples: usize, setup: &Setup) -> Self {
        let sizes = sizes(setup);
        let mut deal = Self::empty(setup.nodes);
        let mut passes = Passes::new((0..samples).collect(), setup.seed, 0);
        for _ in 0..rounds(setup) {
            for size in &sizes {
                deal.push(passes.by_ref().take(*size));
            }
        }
        deal.passes = passes.begun;
        deal
    }

    /// "Sequential, unshuffled": the whole recording is cut into steps and each step into N parts, both as
    /// `numpy.array_split` does; after the last step, the first follows.
    fn in_order(pool: &Pool, setup: &Setup) -> Self {
        let recorded = pool.recorded.max(pool.len());
        let steps = steps(recorded, setup);
        let mut deal = Self::empty(setup.nodes);
        for round in 0..rounds(setup) {
            let step = split(recorded, steps, round % steps);
            let parts: Vec<Range<usize>> = match setup.corruption {
                Corruption::Quantity => quality::power_law_parts(step.len(), setup.nodes, setup.level),
                _ => (0..setup.nodes).map(|node| split(step.len(), setup.nodes, node)).collect(),
            };
            for part in parts {
                // A step may have fewer samples than there are nodes; nobody goes without.
                let part = if part.is_empty() { 0..1 } else { part };
                deal.push(part.map(|at| (step.start + at) % pool.len()));
            }
        }
        deal.passes = rounds(setup).div_ceil(steps);
        deal
    }

    /// Everybody has readings of their own, in the order of time.
    fn to_owners(owners: &[Range<usize>], setup: &Setup) -> Self {
        let sizes = sizes(setup);
        let owners: Vec<&Range<usize>> = owners.iter().filter(|range| !range.is_empty()).collect();
        let mut deal = Self::empty(setup.nodes);
        for round in 0..rounds(setup) {
            for (owner, size) in owners.iter().zip(&sizes) {
                deal.push((round * size..(round + 1) * size).map(|at| owner.start + at % owner.len()));
            }
        }
        let passes =
            owners.iter().zip(&sizes).map(|(owner, size)| (rounds(setup) * size).div_ceil(owner.len()));
        deal.passes = passes.max().unwrap_or(0);
        deal
    }

    /// Node by node from the samples of its classes, each class alike often.
    pub(super) fn by_classes(pool: &Pool, setup: &Setup, classes: &[Vec<u32>]) -> Result<Self, StreamError> {
        let dataset = setup.dataset;
        let Answers::Classes { of, count } = &pool.answers else {
            return Err(StreamError::NoClasses { dataset, corruption: setup.corruption });
        };
        let mut members = vec![Vec::new(); *count as usize];
        of.iter().enumerate().for_each(|(at, class)| members[*class as usize].push(at));
        if let Some(class) = members.iter().position(Vec::is_empty) {
            let (taken, recorded) = (pool.len(), pool.recorded);
            return Err(StreamError::NoSample { dataset, class: class as u32, taken, recorded });
        }
        let mut passes = Vec::new();
        let mut choices = Vec::new();
        for (node, classes) in classes.iter().enumerate() {
            let each = classes.iter().map(|class| {
                let stream = node * *count as usize + *class as usize + 1;
                Passes::new(members[*class as usize].clone(), setup.seed, stream)
            });
            passes.push(each.collect::<Vec<_>>());
            choices.push(generator(setup.seed, Purpose::Classes, node, 1));
        }
        let mut deal = Self::empty(setup.nodes);
        for _ in 0..rounds(setup) {
            for (passes, choice) in passes.iter_mut().zip(&mut choices) {
                let batch = (0..setup.batch).filter_map(|_| {
                    let class = choice.random_range(0..passes.len());
                    passes[class].next()
                });
                deal.push(batch.collect::<Vec<_>>().into_iter());
            }
        }
        deal.passes = passes.iter().flatten().map(|passes| passes.begun).max().unwrap_or(0);
        Ok(deal)
    }

    fn empty(nodes: usize) -> Self {
        Self { nodes, order: Vec::new(), ends: Vec::new(), passes: 0 }
    }

    fn push(&mut self, batch: impl Iterator<Item = usize>) {
        self.order.extend(batch.map(|at| at as u32));
        self.ends.push(self.order.len());
    }

    pub(super) fn rounds(&self) -> u32 {
        (self.ends.len() / self.nodes) as u32
    }

    /// How many samples are dealt.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Positions of a node's batch; none outside the rounds that were dealt.
    pub(super) fn range(&self, node: usize, round: u32) -> Range<usize> {
        let known = node < self.nodes && (1..=self.rounds()).contains(&round);
        if !known {
            return 0..0;
        }
        let batch = (round as usize - 1) * self.nodes + node;
        let start = if batch == 0 { 0 } else { self.ends[batch - 1] };
        start..self.ends[batch]
    }

    /// The samples of a node's batch.
    pub(super) fn of(&self, node: usize, round: u32) -> &[u32] {
        &self.order[self.range(node, round)]
    }

    /// The samples of all nodes in a round.
    pub(super) fn all(&self, round: u32) -> &[u32] {
        &self.order[self.range(0, round).start..self.range(self.nodes - 1, round).end]
    }
}

/// The rounds of a setup, and one to look ahead.
fn rounds(setup: &Setup) -> usize {
    setup.rounds as usize + 1
}

/// The batches of all nodes in each round.
fn sizes(setup: &Setup) -> Vec<usize> {
    match setup.corruption {
        Corruption::Quantity => quality::power_law_sizes(setup.batch, setup.nodes, setup.level),
        _ => vec![setup.batch; setup.nodes],
    }
}

/// Steps into which the published code cuts a recording: batches are `setup.batch` on average. MNIST is cut into 700 at
/// N = 30 and batches of 3, where 667 would do: the last nodes, which are the noisiest, get 2 samples instead of 3.
fn steps(recorded: usize, setup: &Setup) -> usize {
    let a_round = setup.nodes * setup.batch;
    let steps = match setup.dataset {
        Dataset::Mnist => (recorded * 21).div_ceil(a_round * 20),
        _ => recorded.div_ceil(a_round),
    };
    steps.max(1)
}

/// Part `at` of `parts` of 0..`length`, as `numpy.array_split` cuts: the first `length mod parts` are one longer.
pub(super) fn split(length: usize, parts: usize, at: usize) -> Range<usize> {
    let (size, longer) = (length / parts, length % parts);
    let start = at * size + at.min(longer);
    start..start + size + usize::from(at < longer)
}

/// Goes through samples again and again, each time in another order.
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
            let mut generator = generator(self.seed, Purpose::Order, self.stream, self.begun as u32);
            self.samples.shuffle(&mut generator);
            self.next = 0;
            self.begun += 1;
        }
        self.next += 1;
        self.samples.get(self.next - 1).copied()
    }
}
