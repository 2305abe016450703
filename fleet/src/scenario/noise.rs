//! Noise in samples.

use std::collections::HashMap;

use evenhand_node::reading::{LabelledRow, RowTarget};
use evenhand_node::window::FEATURES;
use rand::RngExt;
use rand::seq::index;
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use super::{Corruption, ScenarioConfig};
use crate::data::partition::Partition;
use crate::data::random::{RandomPurpose, generator};
use crate::data::{AsPublished, Dataset, SamplePool, SampleTargets};

/// Deviation of feature noise: the paper says variance 1, the published code has this.
const DEVIATION_CODE: f32 = 1.2;

/// A feature of a sample with missing values is missing with this probability.
const MISSING: f64 = 0.5;

/// Features of a step of a series: the load, then two phases of the day.
const LOAD: usize = 0;
const DAY: std::ops::Range<usize> = 1..3;

/// Rounds in which non-stationary noise grows or fades.
const DRIFT_ROUNDS: u32 = 50;

/// The change of a corrupted sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Noise {
    /// Every feature gets Gaussian noise of this deviation.
    Features { deviation: f32 },
    /// Every feature changes its sign.
    NegatedFeatures,
    /// The class is drawn from `count`.
    Label { count: u32, own_too: bool },
    /// The value changes its sign.
    NegatedValue,
    /// Every feature is 0 by chance.
    Missing,
    /// The time of day is half a day off.
    Clock,
    /// All readings are the oldest one.
    Stuck,
    /// All readings are drawn from a normal distribution with mean 0 and deviation 1, as normalised ones have.
    MadeUp,
}

impl Noise {
    pub(super) fn of(pool: &SamplePool, config: &ScenarioConfig) -> Option<Self> {
        let code = config.as_published == AsPublished::Code;
        match (config.corruption, &pool.targets) {
            (
                Corruption::None
                | Corruption::Quantity
                | Corruption::Heterogeneity
                | Corruption::FewClasses
                | Corruption::Unstable,
                _,
            ) => None,
            (Corruption::MissingValues, _) => Some(Noise::Missing),
            (Corruption::ShiftedClock, _) => Some(Noise::Clock),
            (Corruption::StuckMeter, _) => Some(Noise::Stuck),
            (Corruption::MadeUp, _) => Some(Noise::MadeUp),
            (
                Corruption::FeatureNoise | Corruption::StrategicRandom | Corruption::StrategicPoisson,
                SampleTargets::Values { .. },
            ) if code => Some(Noise::NegatedFeatures),
            (Corruption::FeatureNoise | Corruption::StrategicRandom | Corruption::StrategicPoisson, _) => {
                Some(Noise::Features { deviation: if code { DEVIATION_CODE } else { 1.0 } })
            }
            (Corruption::LabelNoise | Corruption::NonStationary, SampleTargets::Classes { count, .. }) => {
                Some(Noise::Label { count: *count, own_too: code })
            }
            // The paper does not say what a random label of a number is; the published code negates it.
            (Corruption::LabelNoise | Corruption::NonStationary, SampleTargets::Values { .. }) => {
                Some(Noise::NegatedValue)
            }
        }
    }

    pub(super) fn corrupt(self, row: &mut LabelledRow, generator: &mut ChaCha8Rng) {
        match (self, &mut row.target) {
            (Noise::Features { deviation }, _) => {
                let noise =
                    |feature: &mut f32| *feature += deviation * generator.sample::<f32, _>(StandardNormal);
                row.features.iter_mut().for_each(noise);
            }
            (Noise::NegatedFeatures, _) => row.features.iter_mut().for_each(|feature| *feature = -*feature),
            (Noise::Missing, _) => {
                row.features
                    .iter_mut()
                    .filter(|_| generator.random_bool(MISSING))
                    .for_each(|feature| *feature = 0.0);
            }
            // Half a turn of the day's two phases.
            (Noise::Clock, _) => {
                let steps = row.features.chunks_exact_mut(FEATURES);
                steps.for_each(|step| step[DAY].iter_mut().for_each(|phase| *phase = -*phase));
            }
            (Noise::Stuck, RowTarget::Value(value)) => {
                let reading = row.features[LOAD];
                row.features.chunks_exact_mut(FEATURES).for_each(|step| step[LOAD] = reading);
                *value = reading;
            }
            (Noise::MadeUp, RowTarget::Value(value)) => {
                let steps = row.features.chunks_exact_mut(FEATURES);
                steps.for_each(|step| step[LOAD] = generator.sample(StandardNormal));
                *value = generator.sample(StandardNormal);
            }
            (Noise::Label { count, own_too: true }, RowTarget::Class(class)) => {
                *class = generator.random_range(0..count);
            }
            (Noise::Label { count, own_too: false }, RowTarget::Class(class)) if count > 1 => {
                *class = (*class + generator.random_range(1..count)) % count;
            }
            (Noise::NegatedValue, RowTarget::Value(value)) => *value = -*value,
            (Noise::Label { .. } | Noise::NegatedValue | Noise::Stuck | Noise::MadeUp, _) => {}
        }
    }
}

/// By position in the partition: whether the sample is corrupted; where samples are seen again, as before.
///
/// The paper's nodes have streams: each sample by chance ζᵢ. The published code corrupts exactly ⌊ζᵢ·n⌋ of a node's n
/// samples, chosen over the whole run; only where noise changes with time it goes by chance, too.
pub(super) fn corrupted(config: &ScenarioConfig, zetas: &[f64], measured: &Partition) -> Vec<bool> {
    let mut corrupted = vec![false; measured.len()];
    for (node, zeta) in zetas.iter().enumerate() {
        let mut generator = generator(config.seed, RandomPurpose::Corrupted, node, 0);
        let rounds = (1..=measured.rounds()).map(|round| (round, measured.range(node, round)));
        let drifts = drift(config, node, 1).is_some();
        if config.as_published == AsPublished::Code && !drifts && config.dataset != Dataset::DayAhead {
            let own: Vec<usize> = rounds.flat_map(|(_, range)| range).collect();
            let count = (zeta * own.len() as f64).floor() as usize;
            index::sample(&mut generator, own.len(), count)
                .into_iter()
                .for_each(|at| corrupted[own[at]] = true);
            continue;
        }
        let mut known: HashMap<u32, bool> = HashMap::new();
        for (round, range) in rounds {
            let probability = drift(config, node, round).unwrap_or(*zeta);
            if config.dataset == Dataset::DayAhead {
                // A meter is bad for a day, not for half an hour.
                let whole = generator.random_bool(probability);
                corrupted[range].fill(whole);
                continue;
            }
            let samples = measured.of(node, round);
            for (corrupted, sample) in corrupted[range].iter_mut().zip(samples) {
                let mut by_chance = || generator.random_bool(probability);
                *corrupted =
                    if drifts { by_chance() } else { *known.entry(*sample).or_insert_with(by_chance) };
            }
        }
    }
    corrupted
}

/// The probability of noise in a round where it changes: it grows on the first node, and fades on the last.
fn drift(config: &ScenarioConfig, node: usize, round: u32) -> Option<f64> {
    if config.corruption != Corruption::NonStationary {
        return None;
    }
    let gone = f64::from((round - 1).min(DRIFT_ROUNDS)) / f64::from(DRIFT_ROUNDS);
    match node {
        0 => Some(config.level * gone),
        node if node + 1 == config.nodes => Some(config.level * (1.0 - gone)),
        _ => None,
    }
}
