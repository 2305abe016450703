//! What is spoilt, and how.

use evenhand_node::reading::{Row, Target};
use rand::RngExt;
use rand::seq::index;
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use super::deal::Deal;
use super::{Purpose, generator};
use crate::corruption::Corruption;
use crate::data::{Answers, Pool};
use crate::experiment::setup::{AsPublished, Setup};

/// Deviation of feature noise: the paper says variance 1, the published code has this.
const DEVIATION_CODE: f32 = 1.2;

/// A feature of a sample with missing values is missing with this probability.
const MISSING: f64 = 0.5;

/// Rounds in which non-stationary noise grows or fades.
const DRIFT_ROUNDS: u32 = 50;

/// What happens to a sample that is spoilt.
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
}

impl Noise {
    pub(super) fn of(pool: &Pool, setup: &Setup) -> Option<Self> {
        let code = setup.as_published == AsPublished::Code;
        match (setup.corruption, &pool.answers) {
            (
                Corruption::None | Corruption::Quantity | Corruption::Heterogeneity | Corruption::Unstable,
                _,
            ) => None,
            (Corruption::MissingValues, _) => Some(Noise::Missing),
            (
                Corruption::FeatureNoise | Corruption::StrategicRandom | Corruption::StrategicPoisson,
                Answers::Values { .. },
            ) if code => Some(Noise::NegatedFeatures),
            (Corruption::FeatureNoise | Corruption::StrategicRandom | Corruption::StrategicPoisson, _) => {
                Some(Noise::Features { deviation: if code { DEVIATION_CODE } else { 1.0 } })
            }
            (Corruption::LabelNoise | Corruption::NonStationary, Answers::Classes { count, .. }) => {
                Some(Noise::Label { count: *count, own_too: code })
            }
            // The paper does not say what a random label of a number is; the published code negates it.
            (Corruption::LabelNoise | Corruption::NonStationary, Answers::Values { .. }) => {
                Some(Noise::NegatedValue)
            }
        }
    }

    pub(super) fn spoil(self, row: &mut Row, generator: &mut ChaCha8Rng) {
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
            (Noise::Label { count, own_too: true }, Target::Class(class)) => {
                *class = generator.random_range(0..count);
            }
            (Noise::Label { count, own_too: false }, Target::Class(class)) if count > 1 => {
                *class = (*class + generator.random_range(1..count)) % count;
            }
            (Noise::NegatedValue, Target::Value(value)) => *value = -*value,
            (Noise::Label { .. } | Noise::NegatedValue, _) => {}
        }
    }
}

/// By position in the deal: whether the sample is spoilt.
///
/// The paper's nodes have streams: each sample by chance ζᵢ. The published code spoils exactly ⌊ζᵢ·n⌋ of a node's n
/// samples, chosen over the whole run; only where noise changes with time it goes by chance, too.
pub(super) fn spoilt(setup: &Setup, zetas: &[f64], measured: &Deal) -> Vec<bool> {
    let mut spoilt = vec![false; measured.len()];
    for (node, zeta) in zetas.iter().enumerate() {
        let mut generator = generator(setup.seed, Purpose::Spoilt, node, 0);
        let rounds = (1..=measured.rounds()).map(|round| (round, measured.range(node, round)));
        let drifts = drift(setup, node, 1).is_some();
        if setup.as_published == AsPublished::Code && !drifts {
            let own: Vec<usize> = rounds.flat_map(|(_, range)| range).collect();
            let count = (zeta * own.len() as f64).floor() as usize;
            index::sample(&mut generator, own.len(), count).into_iter().for_each(|at| spoilt[own[at]] = true);
            continue;
        }
        for (round, range) in rounds {
            let chance = drift(setup, node, round).unwrap_or(*zeta);
            spoilt[range].iter_mut().for_each(|spoilt| *spoilt = generator.random_bool(chance));
        }
    }
    spoilt
}

/// The chance of noise in a round where it changes: it grows on the first node, and fades on the last.
fn drift(setup: &Setup, node: usize, round: u32) -> Option<f64> {
    if setup.corruption != Corruption::NonStationary {
        return None;
    }
    let gone = f64::from((round - 1).min(DRIFT_ROUNDS)) / f64::from(DRIFT_ROUNDS);
    match node {
        0 => Some(setup.level * gone),
        node if node + 1 == setup.nodes => Some(setup.level * (1.0 - gone)),
        _ => None,
    }
}
