//! Online performance, as nobody inside the federation can see it.
//!
//! In round t every node holds some model: the one it was last given. The observer scores that model on what comes next,
//! the union of all nodes' batches of round t + 1 without their noise. It needs only who was drawn and what they were
//! given, so it is the same for every transport.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenhand_models::{Batch, Loss, Model, ModelError, Targets, Trainer};
use evenhand_node::source::household::Household;
use evenhand_node::window::{Series, SeriesSettings};
use rand::seq::index;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rayon::prelude::*;

/// Beyond so many samples the union is represented by a random part of it.
const SAMPLES_MAX: usize = 512;

/// Watches a fleet of simulated households.
pub struct Observer {
    model: Model,
    loss: Loss,
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
        loss: Loss,
        households: Vec<Household>,
        series: &SeriesSettings,
        readings_a_round: usize,
        seed: u64,
    ) -> Self {
        let initial: Arc<[f32]> = model.initial_weights().into();
        let mut observer = Self {
            model,
            loss,
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

    /// Rounds must come in order. Each of `drawn` was given `weights`; returns the online loss of every node.
    pub fn round(
        &mut self,
        round: u32,
        drawn: &[usize],
        weights: Arc<[f32]>,
    ) -> Result<Vec<f64>, ModelError> {
        drawn.iter().for_each(|&node| self.held[node] = round);
        self.versions.insert(round, weights);
        self.versions.retain(|version, _| self.held.contains(version));
        let Some(batch) = self.advance() else { return Ok(vec![f64::NAN; self.held.len()]) };
        let losses: BTreeMap<u32, f64> = self
            .versions
            .par_iter()
            .map_init(
                || Trainer::new(&self.model),
                |trainer, (version, weights)| {
                    trainer
                        .evaluate(weights, &batch, self.loss)
                        .map(|scored| (*version, f64::from(scored.loss)))
                },
            )
            .collect::<Result<_, _>>()?;
        Ok(self.held.iter().map(|version| losses[version]).collect())
    }

    /// Lets one round's clean readings in, and gathers the union of the batches they make.
    fn advance(&mut self) -> Option<Batch> {
        let count = self.readings_a_round;
        let batches: Vec<Batch> =
            self.houses.par_iter_mut().filter_map(|house| house.next_batch(count)).collect();
        let union = united(batches)?;
        Some(thinned(union, SAMPLES_MAX, &mut self.rng))
    }
}

impl House {
    fn next_batch(&mut self, count: usize) -> Option<Batch> {
        for index in self.next..self.next + count as u64 {
            self.series.add(self.household.clean(index));
        }
        self.next += count as u64;
        let taken = self.series.batch(count)?;
        self.series.mark_used(taken.upto);
        Some(taken.batch)
    }
}

/// All samples of batches of one shape.
fn united(batches: Vec<Batch>) -> Option<Batch> {
    let mut batches = batches.into_iter();
    let mut union = batches.next()?;
    for batch in batches {
        union.shape[0] += batch.shape[0];
        union.inputs.extend(batch.inputs);
        if let (Targets::Values(all), Targets::Values(more)) = (&mut union.targets, batch.targets) {
            all.extend(more);
        }
    }
    Some(union)
}

/// At most `samples_max` samples, chosen without replacement.
fn thinned(union: Batch, samples_max: usize, rng: &mut ChaCha8Rng) -> Batch {
    let samples = union.shape[0];
    let Targets::Values(targets) = &union.targets else { return union };
    if samples <= samples_max {
        return union;
    }
    let length = union.inputs.len() / samples;
    let chosen = index::sample(rng, samples, samples_max);
    let mut shape = union.shape.clone();
    shape[0] = samples_max;
    Batch {
        inputs: chosen
            .iter()
            .flat_map(|sample| &union.inputs[sample * length..][..length])
            .copied()
            .collect(),
        shape,
        targets: Targets::Values(chosen.iter().map(|sample| targets[sample]).collect()),
    }
}
