//! Nodes that are away, and nodes that take without giving.

use rand::RngExt;
use rand_distr::Poisson;

use super::{Purpose, generator};
use crate::corruption::Corruption;
use crate::experiment::setup::Setup;

/// The chance that a strategic node keeps its update to itself.
const SILENT: f64 = 0.5;
/// Rounds of exploiting after which strategic nodes stop, on average.
const STOP_MEAN: f64 = 20.0;

/// What a node does besides measuring.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Conduct {
    /// Takes part in every round, honestly.
    Steady,
    /// Is away in some rounds: cannot be drawn, hears nothing.
    Unstable {
        /// The chance of each round.
        away: f64,
    },
    /// While exploiting, takes the model and keeps its update to itself, now and then.
    StaysSilent {
        /// The chance of each round.
        chance: f64,
    },
    /// Takes models without giving updates, for good, from some round of exploiting on.
    StopsAfter {
        /// Rounds of exploiting in which it still contributes.
        exploiting_rounds: u32,
    },
}

impl Conduct {
    /// Whether the node is away in a round, counted from 1.
    pub fn is_away(self, seed: u64, node: usize, round: u32) -> bool {
        match self {
            Conduct::Unstable { away } => generator(seed, Purpose::Away, node, round).random_bool(away),
            Conduct::Steady | Conduct::StaysSilent { .. } | Conduct::StopsAfter { .. } => false,
        }
    }

    /// Whether the node, if drawn, keeps its update to itself. `exploiting_round` counts from 1 and is `None` while
    /// exploring: then everybody contributes, since standings depend on it.
    pub fn is_silent(self, seed: u64, node: usize, round: u32, exploiting_round: Option<u32>) -> bool {
        let Some(exploiting_round) = exploiting_round else { return false };
        match self {
            Conduct::StaysSilent { chance } => {
                generator(seed, Purpose::Silent, node, round).random_bool(chance)
            }
            Conduct::StopsAfter { exploiting_rounds } => exploiting_round > exploiting_rounds,
            Conduct::Steady | Conduct::Unstable { .. } => false,
        }
    }
}

pub(super) fn conducts(setup: &Setup, zetas: &[f64]) -> Vec<Conduct> {
    let stop = Poisson::new(STOP_MEAN).expect("the mean is positive and finite");
    let of = |(node, zeta): (usize, &f64)| match setup.corruption {
        Corruption::Unstable => Conduct::Unstable { away: *zeta },
        Corruption::StrategicRandom => Conduct::StaysSilent { chance: SILENT },
        Corruption::StrategicPoisson => {
            let drawn: f64 = generator(setup.seed, Purpose::Stop, node, 0).sample(stop);
            Conduct::StopsAfter { exploiting_rounds: drawn as u32 }
        }
        Corruption::None
        | Corruption::FeatureNoise
        | Corruption::LabelNoise
        | Corruption::Quantity
        | Corruption::MissingValues
        | Corruption::Heterogeneity
        | Corruption::NonStationary => Conduct::Steady,
    };
    zetas.iter().enumerate().map(of).collect()
}
