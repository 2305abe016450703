//! The stream of samples that the nodes of a trial measure.

use std::collections::BTreeSet;
use std::sync::Arc;

use evenhand_models::{Batch, Targets};
use evenhand_node::forecast::{INPUTS, LeadRows, QUANTILES};
use evenhand_node::reading::{InputBatch, LabelledRow, Reading, RowTarget};

use super::day_ahead::{self, LoadScale};
use super::noise::{self, Noise};
use super::{FalseReadings, NodeBehaviour, ScenarioConfig, ScenarioError, behaviour, quality};
use crate::data::partition::{EmptyClass, Partition};
use crate::data::random::{RandomPurpose, generator};
use crate::data::{Dataset, SamplePool, SampleTargets};

/// The measurements of all nodes of a trial.
#[derive(Debug)]
pub struct SampleStream {
    pool: Arc<SamplePool>,
    seed: u64,
    zetas: Vec<f64>,
    nominal_zetas: Vec<f64>,
    behaviours: Vec<NodeBehaviour>,
    /// The samples that each node measures in each round.
    pub(super) measured: Partition,
    /// The samples that models are scored on, where they are others.
    scored: Option<Partition>,
    /// By position in the partition: whether the sample is corrupted.
    corrupted: Vec<bool>,
    noise: Option<Noise>,
    /// Rounds whose data a node has read before the first.
    before: u32,
    /// Where nodes read whole days: of each, its place in the pool, its scale, and the rows of its clean readings by round.
    households: Vec<StreamedHousehold>,
}

#[derive(Debug)]
struct StreamedHousehold {
    start: usize,
    scale: LoadScale,
    clean: Vec<LeadRows>,
}

/// A row that a node can be trained on.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainedRow {
    /// The model's input.
    pub inputs: Vec<f32>,
    /// Its class, where the data have classes.
    pub class: Option<u32>,
    /// The wanted outputs, where they have not.
    pub values: Vec<f32>,
}

/// The clean samples of all nodes in one round.
#[derive(Debug, Clone, PartialEq)]
pub struct CleanRound {
    /// The samples.
    pub batch: Batch,
    /// By sample: mean and deviation that bring a value back to what was measured; empty for classes.
    pub scales: Vec<(f32, f32)>,
}

/// Clean samples that no node was trained on.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldOut {
    /// The samples.
    pub clean: CleanRound,
    /// By sample: the node that measures it; none where samples are anybody's.
    pub nodes: Option<Vec<usize>>,
}

impl SampleStream {
    /// Partitions the pool, and chooses the samples that are corrupted.
    pub fn new(pool: Arc<SamplePool>, config: &ScenarioConfig) -> Result<Self, ScenarioError> {
        config.check(&pool)?;
        let partition = config.partition();
        let classes = quality::classes(&pool, config);
        let (measured, scored) = match (&classes, &pool.targets) {
            (Some(classes), SampleTargets::Classes { of, count }) => {
                let missing = |EmptyClass(class)| ScenarioError::NoSample {
                    dataset: config.dataset,
                    class,
                    taken: pool.len(),
                    recorded: pool.recorded,
                };
                let measured = Partition::by_classes((of, *count), &partition, classes).map_err(missing)?;
                (measured, Some(Partition::new(&pool, &partition)))
            }
            _ => (Partition::new(&pool, &partition), None),
        };
        let zetas = quality::zetas(&pool, config, &measured, classes.as_deref());
        let nominal_zetas = match config.level {
            0.0 => quality::nominal_zetas(&pool, config, &measured),
            _ => zetas.clone(),
        };
        let behaviours = behaviour::behaviours(config, &zetas);
        let noise = Noise::of(&pool, config);
        let corrupted = match noise {
            Some(_) => noise::corrupted(config, &zetas, &measured),
            None => vec![false; measured.len()],
        };
        let seed = config.seed;
        let mut stream = Self {
            pool,
            seed,
            zetas,
            nominal_zetas,
            behaviours,
            measured,
            scored,
            corrupted,
            noise,
            before: config.rounds_before(),
            households: Vec::new(),
        };
        if config.dataset == Dataset::DayAhead {
            stream.households = stream.streamed_households(config.nodes);
        }
        Ok(stream)
    }

    fn streamed_households(&self, nodes: usize) -> Vec<StreamedHousehold> {
        let owners = self.pool.owners.iter().flatten().filter(|range| !range.is_empty()).take(nodes);
        let start = |owner: &std::ops::Range<usize>| StreamedHousehold {
            start: owner.start,
            scale: day_ahead::scale(&self.pool, owner),
            clean: Vec::new(),
        };
        let mut households: Vec<StreamedHousehold> = owners.map(start).collect();
        let clean = |(node, home): (usize, &StreamedHousehold)| {
            (1..=self.rounds()).map(|round| self.days(node, round, home, false)).collect()
        };
        let rows = day_ahead::rows(households.iter().enumerate().map(clean).collect());
        households.iter_mut().zip(rows).for_each(|(home, rows)| home.clean = rows);
        households
    }

    /// The readings of a round, the first of which has those of the days before too.
    fn days(&self, node: usize, round: u32, home: &StreamedHousehold, is_corrupted: bool) -> Vec<Reading> {
        let first = if round == 1 { 1 } else { round + self.before };
        let mut readings = Vec::new();
        for at in first..=round + self.before {
            let range = self.measured.range(node, at);
            let samples = self.measured.of(node, at);
            let Some(step) = samples.first().map(|sample| *sample as usize - home.start) else { continue };
            let mut day: Vec<f32> = samples.iter().map(|at| self.pool.features[*at as usize]).collect();
            if let (Some(noise), true, true) = (self.noise, is_corrupted, self.corrupted[range.start]) {
                let mut generator = generator(self.seed, RandomPurpose::Noise, node, at);
                day_ahead::corrupt(noise, &mut day, home.scale, &mut generator);
            }
            readings.extend(day_ahead::readings(step, &day));
        }
        readings
    }

    /// What a node reads in some rounds, or pretends to.
    pub fn inputs(
        &self,
        node: usize,
        rounds: std::ops::Range<u32>,
        pretended: Option<FalseReadings>,
    ) -> InputBatch {
        let Some(home) = self.households.get(node) else {
            return InputBatch::Rows(rounds.flat_map(|round| self.rows(node, round)).collect());
        };
        let mut readings: Vec<Reading> =
            rounds.clone().flat_map(|round| self.days(node, round, home, true)).collect();
        if let Some(pretended) = pretended {
            let mut generator = generator(self.seed, RandomPurpose::Noise, node, rounds.start);
            pretended.replace(&mut readings, home.scale, &mut generator);
        }
        InputBatch::Readings(readings)
    }

    /// Rows of what a node reads up to a round, except in those rounds in which it is away.
    pub fn trained_rows(&self, node: usize, last: u32) -> Vec<TrainedRow> {
        let present = |round: &u32| !self.behaviour(node).is_away(self.seed, node, *round);
        let labelled = |row: LabelledRow| match row.target {
            RowTarget::Class(class) => {
                TrainedRow { inputs: row.features, class: Some(class), values: Vec::new() }
            }
            RowTarget::Value(value) | RowTarget::Chosen { value, .. } => {
                TrainedRow { inputs: row.features, class: None, values: vec![value] }
            }
        };
        let Some(home) = self.households.get(node) else {
            let rows = (1..=last).filter(present).flat_map(|round| self.rows(node, round));
            return rows.map(labelled).collect();
        };
        let readings = (1..=last).filter(present).map(|round| self.days(node, round, home, true)).collect();
        let rows = day_ahead::rows(vec![readings]).into_iter().flatten();
        rows.flat_map(|rows| {
            let of = |(inputs, values): (&[f32], &[f32])| TrainedRow {
                inputs: inputs.to_vec(),
                class: None,
                values: values.to_vec(),
            };
            rows.inputs
                .chunks_exact(INPUTS)
                .zip(rows.targets.chunks_exact(QUANTILES.len()))
                .map(of)
                .collect::<Vec<_>>()
        })
        .collect()
    }

    /// ζ by node: the higher, the worse are its data, so that a fair run has ρ > 0.
    pub fn zetas(&self) -> &[f64] {
        &self.zetas
    }

    /// ζ by node as figures are compared with it: at level 0, where all data are alike, that of the default level.
    pub fn nominal_zetas(&self) -> &[f64] {
        &self.nominal_zetas
    }

    /// The share of each node in all samples.
    pub fn shares(&self) -> Vec<f64> {
        let all = self.measured.len().max(1) as f64;
        let of = |node| (1..=self.rounds()).map(|round| self.measured.of(node, round).len()).sum::<usize>();
        (0..self.zetas.len()).map(|node| of(node) as f64 / all).collect()
    }

    /// The largest batch of a node.
    pub fn batch(&self, node: usize) -> usize {
        (1..=self.measured.rounds()).map(|round| self.measured.of(node, round).len()).max().unwrap_or(0)
    }

    /// Passes through the pool: above 1, samples are seen again, in another order.
    pub fn passes(&self) -> usize {
        self.measured.passes
    }

    /// Rounds of the stream: those of the configuration, and one more to look ahead.
    pub fn rounds(&self) -> u32 {
        self.measured.rounds() - self.before
    }

    /// The shape of one sample.
    pub fn shape(&self) -> &[usize] {
        if self.households.is_empty() { &self.pool.shape } else { &[INPUTS] }
    }

    /// True if nodes read readings, not rows.
    pub fn is_read(&self) -> bool {
        !self.households.is_empty()
    }

    /// The rows that a node measures in a round, counted from 1; none beyond [`rounds`](Self::rounds).
    pub fn rows(&self, node: usize, round: u32) -> Vec<LabelledRow> {
        let mut generator = generator(self.seed, RandomPurpose::Noise, node, round);
        let corrupted = &self.corrupted[self.measured.range(node, round)];
        let samples = self.measured.of(node, round).iter().zip(corrupted);
        let rows = samples.map(|(at, corrupted)| {
            let mut row = self.row(*at as usize);
            if let (Some(noise), true) = (&self.noise, *corrupted) {
                noise.corrupt(&mut row, &mut generator);
            }
            row
        });
        rows.collect()
    }

    /// The clean samples of all nodes in a round. Where nodes see only some classes: as many samples of all.
    pub fn clean(&self, round: u32) -> CleanRound {
        if self.is_read() {
            return self.clean_days(round..round + 1);
        }
        self.clean_samples(self.scored.as_ref().unwrap_or(&self.measured).all(round))
    }

    /// Clean samples, each once, that no node measures before round `from`: those of the later rounds, or any where nodes
    /// see only some classes.
    pub fn held_out(&self, from: u32) -> HeldOut {
        if self.is_read() {
            let rounds = from..self.rounds() + 1;
            let nodes = (0..self.households.len())
                .flat_map(|node| std::iter::repeat_n(node, self.household_days(node, &rounds).len()));
            return HeldOut { nodes: Some(nodes.collect()), clean: self.clean_days(rounds) };
        }
        let before = |round: &u32| *round < from;
        let seen: BTreeSet<u32> =
            (1..=self.rounds()).filter(before).flat_map(|round| self.measured.all(round)).copied().collect();
        let all: BTreeSet<u32> = match &self.scored {
            Some(scored) => (1..=scored.rounds()).flat_map(|round| scored.all(round)).copied().collect(),
            None => (from..=self.rounds()).flat_map(|round| self.measured.all(round)).copied().collect(),
        };
        let chosen: Vec<u32> = all.difference(&seen).copied().collect();
        HeldOut { clean: self.clean_samples(&chosen), nodes: self.owning_nodes(&chosen) }
    }

    /// By sample: the node that has the readings of its owner; none where samples have no owner.
    fn owning_nodes(&self, samples: &[u32]) -> Option<Vec<usize>> {
        let owners: Vec<_> = self.pool.owners.as_ref()?.iter().filter(|range| !range.is_empty()).collect();
        let owner = |at: &u32| owners.iter().position(|range| range.contains(&(*at as usize)));
        samples.iter().map(owner).collect()
    }

    fn household_days(&self, node: usize, rounds: &std::ops::Range<u32>) -> LeadRows {
        let clean = &self.households[node].clean;
        let rows = rounds.clone().filter_map(|round| clean.get(round as usize - 1));
        rows.fold(LeadRows::default(), |mut all, rows| {
            all.inputs.extend(&rows.inputs);
            all.targets.extend(&rows.targets);
            all
        })
    }

    fn clean_days(&self, rounds: std::ops::Range<u32>) -> CleanRound {
        let parts: Vec<LeadRows> =
            (0..self.households.len()).map(|node| self.household_days(node, &rounds)).collect();
        let inputs: Vec<f32> = parts.iter().flat_map(|part| &part.inputs).copied().collect();
        let targets = parts.iter().flat_map(|part| &part.targets).copied().collect();
        let shape = vec![inputs.len() / INPUTS, INPUTS];
        CleanRound { batch: Batch { inputs, shape, targets: Targets::Values(targets) }, scales: Vec::new() }
    }

    fn clean_samples(&self, all: &[u32]) -> CleanRound {
        let at = all.iter().map(|at| *at as usize);
        let inputs = at.clone().flat_map(|at| self.pool.sample(at)).copied().collect();
        let (targets, scales) = match &self.pool.targets {
            SampleTargets::Classes { of, .. } => {
                (Targets::Classes(at.map(|at| of[at]).collect()), Vec::new())
            }
            SampleTargets::Values { of, scales } => {
                (Targets::Values(at.clone().map(|at| of[at]).collect()), at.map(|at| scales[at]).collect())
            }
        };
        let shape = std::iter::once(all.len()).chain(self.pool.shape.iter().copied()).collect();
        CleanRound { batch: Batch { inputs, shape, targets }, scales }
    }

    /// The behaviour of a node.
    pub fn behaviour(&self, node: usize) -> NodeBehaviour {
        self.behaviours[node]
    }

    pub(super) fn row(&self, at: usize) -> LabelledRow {
        let target = match &self.pool.targets {
            SampleTargets::Classes { of, .. } => RowTarget::Class(of[at]),
            SampleTargets::Values { of, .. } => RowTarget::Value(of[at]),
        };
        LabelledRow { features: self.pool.sample(at).to_vec(), target }
    }
}
