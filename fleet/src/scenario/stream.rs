//! The stream of samples that the nodes of a trial measure.

use std::collections::BTreeSet;
use std::sync::Arc;

use evenhand_models::{Batch, Targets};
use evenhand_node::reading::{LabelledRow, RowTarget};

use super::noise::{self, Noise};
use super::{NodeBehaviour, ScenarioConfig, ScenarioError, behaviour, quality};
use crate::data::partition::{EmptyClass, Partition};
use crate::data::random::{RandomPurpose, generator};
use crate::data::{SamplePool, SampleTargets};

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
}

/// The clean samples of all nodes in one round.
#[derive(Debug, Clone, PartialEq)]
pub struct CleanRound {
    /// The samples.
    pub batch: Batch,
    /// By sample: mean and deviation that bring a value back to what was measured; empty for classes.
    pub scales: Vec<(f32, f32)>,
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
        Ok(Self { pool, seed, zetas, nominal_zetas, behaviours, measured, scored, corrupted, noise })
    }

    /// ζ by node: the higher, the worse are its data, so that a fair run has ρ > 0.
    pub fn zetas(&self) -> &[f64] {
        &self.zetas
    }

    /// ζ by node as figures are compared with it: at level 0, where all data are alike, that of the default level.
    pub fn nominal_zetas(&self) -> &[f64] {
        &self.nominal_zetas
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
        self.measured.rounds()
    }

    /// The shape of one sample.
    pub fn shape(&self) -> &[usize] {
        &self.pool.shape
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
        self.clean_samples(self.scored.as_ref().unwrap_or(&self.measured).all(round))
    }

    /// Clean samples, each once, that no node measures before round `from`: those of the later rounds, or any where nodes
    /// see only some classes.
    pub fn held_out(&self, from: u32) -> CleanRound {
        let before = |round: &u32| *round < from;
        let seen: BTreeSet<u32> =
            (1..=self.rounds()).filter(before).flat_map(|round| self.measured.all(round)).copied().collect();
        let all: BTreeSet<u32> = match &self.scored {
            Some(scored) => (1..=scored.rounds()).flat_map(|round| scored.all(round)).copied().collect(),
            None => (from..=self.rounds()).flat_map(|round| self.measured.all(round)).copied().collect(),
        };
        self.clean_samples(&all.difference(&seen).copied().collect::<Vec<_>>())
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
