//! Online performance, as nobody inside the federation can see it.
//!
//! In round t every node holds some model: the one it was last given. The observer scores that model on what comes next,
//! the union of all nodes' batches of round t + 1 without their noise. It needs only who was drawn and what they were
//! given, so it is the same for every transport.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenhand_models::{Model, ModelError, Targets, Trainer};
use evenhand_node::source::household::Household;
use evenhand_node::window::{Series, SeriesSettings};
use rand::seq::index;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rayon::prelude::*;

/// Beyond so many samples the union is represented by a random part of it.
const SAMPLES_MAX: usize = 512;

/// How well the model that a node holds does on what comes next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Online {
    /// Its mean squared error on normalised values.
    pub loss: f64,
    /// Its mean absolute error in shares of what was measured.
    pub mape: f64,
}

impl Online {
    const UNKNOWN: Self = Self { loss: f64::NAN, mape: f64::NAN };
}

/// Watches a fleet of simulated households.
pub struct Observer {
    model: Model,
    houses: Vec<House>,
    readings_a_round: usize,
    /// The version each node holds, by the round in which it was handed out.
    held: Vec<u32>,
    versions: BTreeMap<u32, Arc<[f32]>>,
    rng: ChaCha8Rng,
}

/// A household and its meter, if the meter told the truth.
struct House {
    household: Household,
    series: Series,
    /// Number of its next reading.
    next: u64,
}

impl Observer {
    /// Watches `households`, all of which hold `initial` until they are given something else.
    pub fn new(
        model: Model,
        households: Vec<Household>,
        series: &SeriesSettings,
        readings_a_round: usize,
        seed: u64,
    ) -> Self {
        let initial: Arc<[f32]> = model.initial_weights().into();
        let mut observer = Self {
            model,
            held: vec![0; households.len()],
            houses: (households.into_iter())
                .map(|household| House { household, series: Series::new(series.clone()), next: 0 })
                .collect(),
            readings_a_round,
            versions: BTreeMap::from([(0, initial)]),
            rng: ChaCha8Rng::seed_from_u64(seed),
        };
        observer.advance();
        observer
    }

    /// Rounds must come in order. Each of `drawn` was given `weights`; returns the performance of every node.
    pub fn round(
        &mut self,
        round: u32,
        drawn: &[usize],
        weights: Arc<[f32]>,
    ) -> Result<Vec<Online>, ModelError> {
        drawn.iter().for_each(|&node| self.held[node] = round);
        self.versions.insert(round, weights);
        self.versions.retain(|version, _| self.held.contains(version));
        let Some(ahead) = self.advance() else { return Ok(vec![Online::UNKNOWN; self.held.len()]) };
        let scores: BTreeMap<u32, Online> = self
            .versions
            .par_iter()
            .map_init(
                || Trainer::new(&self.model),
                |trainer, (version, weights)| Ok((*version, ahead.score(trainer, weights)?)),
            )
            .collect::<Result<_, ModelError>>()?;
        Ok(self.held.iter().map(|version| scores[version]).collect())
    }

    /// Lets one round's clean readings in, and gathers the union of the batches they make.
    fn advance(&mut self) -> Option<Ahead> {
        let count = self.readings_a_round;
        let parts: Vec<Ahead> =
            self.houses.par_iter_mut().filter_map(|house| house.next_batch(count)).collect();
        Some(parts.into_iter().reduce(Ahead::unite)?.thinned(SAMPLES_MAX, &mut self.rng))
    }
}

impl House {
    fn next_batch(&mut self, count: usize) -> Option<Ahead> {
        for index in self.next..self.next + count as u64 {
            self.series.add(self.household.clean(index));
        }
        self.next += count as u64;
        let taken = self.series.batch(count)?;
        self.series.mark_used(taken.upto);
        let Targets::Values(targets) = taken.batch.targets else { return None };
        let normaliser = self.series.normaliser();
        let scale = (normaliser.mean(), normaliser.deviation());
        Some(Ahead {
            inputs: taken.batch.inputs,
            shape: taken.batch.shape,
            scales: vec![scale; targets.len()],
            targets,
        })
    }
}

/// What comes next: samples, and how each was normalised.
struct Ahead {
    inputs: Vec<f32>,
    shape: Vec<usize>,
    targets: Vec<f32>,
    /// Mean and deviation of the household that a sample comes from.
    scales: Vec<(f64, f64)>,
}

impl Ahead {
    /// All samples of both, which are of one shape.
    fn unite(mut self, more: Self) -> Self {
        self.shape[0] += more.shape[0];
        self.inputs.extend(more.inputs);
        self.targets.extend(more.targets);
        self.scales.extend(more.scales);
        self
    }

    /// At most `samples_max` samples, chosen without replacement.
    fn thinned(self, samples_max: usize, rng: &mut ChaCha8Rng) -> Self {
        let samples = self.targets.len();
        if samples <= samples_max {
            return self;
        }
        let length = self.inputs.len() / samples;
        let chosen = index::sample(rng, samples, samples_max);
        let mut shape = self.shape.clone();
        shape[0] = samples_max;
        Self {
            inputs: chosen
                .iter()
                .flat_map(|sample| &self.inputs[sample * length..][..length])
                .copied()
                .collect(),
            shape,
            targets: chosen.iter().map(|sample| self.targets[sample]).collect(),
            scales: chosen.iter().map(|sample| self.scales[sample]).collect(),
        }
    }

    fn score(&self, trainer: &mut Trainer, weights: &[f32]) -> Result<Online, ModelError> {
        let (outputs, _) = trainer.forward(weights, &self.inputs, &self.shape)?;
        let error = |((output, target), (mean, deviation)): ((&f32, &f32), &(f64, f64))| {
            let measured = mean + deviation * f64::from(*target);
            (deviation * f64::from(output - target) / measured).abs()
        };
        let errors = outputs.iter().zip(&self.targets).zip(&self.scales).map(error);
        let squares =
            outputs.iter().zip(&self.targets).map(|(output, target)| f64::from(output - target).powi(2));
        let count = self.targets.len() as f64;
        Ok(Online { loss: squares.sum::<f64>() / count, mape: errors.sum::<f64>() / count })
    }
}
