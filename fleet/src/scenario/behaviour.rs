//! Behaviour of nodes: away, silent or steady.

use rand::RngExt;
use rand::seq::index;
use rand_distr::Poisson;

use super::{Corruption, ScenarioConfig};
use crate::data::random::{RandomPurpose, generator};

/// The probability that a strategic node withholds its update.
const SILENT: f64 = 0.5;
/// Rounds of exploiting after which strategic nodes stop, on average.
const STOP_MEAN: f64 = 20.0;

/// The behaviour of a node, beside its measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NodeBehaviour {
    /// Takes part in every round, honestly.
    Steady,
    /// Is away in some rounds: cannot be drawn, receives nothing.
    Unstable {
        /// The probability in each round.
        away: f64,
    },
    /// While exploiting, takes the model and withholds its update, by chance.
    StaysSilent {
        /// The probability in each round.
        chance: f64,
    },
    /// Takes models without giving updates, for good, from some round of exploiting on.
    StopsAfter {
        /// Rounds of exploiting in which it still contributes.
        exploiting_rounds: u32,
    },
    /// While exploring, contributes nothing after some round.
    StopsExploring {
        /// The last round in which it contributes.
        after: u32,
    },
    /// While exploring, contributes after some round only where it is among the chosen ones of all nodes.
    Attends {
        /// The last round in which everybody contributes.
        after: u32,
        /// Nodes that contribute from then on.
        chosen: usize,
        /// Nodes in all.
        nodes: usize,
    },
    /// Takes part in some rounds only: joins, and leaves for good.
    Visits {
        /// The first round.
        from: u32,
        /// The first round after its leave; none if it stays.
        until: Option<u32>,
    },
}

impl NodeBehaviour {
    /// True if the node is not there when the federation begins.
    pub fn joins_later(self) -> bool {
        matches!(self, Self::Visits { from, .. } if from > 1)
    }

    /// True if the node is away in a round, counted from 1.
    pub fn is_away(self, seed: u64, node: usize, round: u32) -> bool {
        match self {
            NodeBehaviour::Unstable { away } => {
                generator(seed, RandomPurpose::Away, node, round).random_bool(away)
            }
            NodeBehaviour::Visits { from, until } => {
                round < from || until.is_some_and(|until| round >= until)
            }
            NodeBehaviour::Steady
            | NodeBehaviour::StaysSilent { .. }
            | NodeBehaviour::StopsAfter { .. }
            | NodeBehaviour::StopsExploring { .. }
            | NodeBehaviour::Attends { .. } => false,
        }
    }

    /// True if the node, if asked, withholds its update. `exploiting_round` counts from 1 and is `None` while
    /// exploring: then most contribute, since standings depend on it.
    pub fn is_silent(self, seed: u64, node: usize, round: u32, exploiting_round: Option<u32>) -> bool {
        let Some(exploiting_round) = exploiting_round else {
            return match self {
                NodeBehaviour::StopsExploring { after } => round > after,
                NodeBehaviour::Attends { after, chosen, nodes } if round > after => {
                    let mut generator = generator(seed, RandomPurpose::Attending, 0, round);
                    !index::sample(&mut generator, nodes, chosen.min(nodes)).iter().any(|one| one == node)
                }
                _ => false,
            };
        };
        match self {
            NodeBehaviour::StaysSilent { chance } => {
                generator(seed, RandomPurpose::Silent, node, round).random_bool(chance)
            }
            NodeBehaviour::StopsAfter { exploiting_rounds } => exploiting_round > exploiting_rounds,
            NodeBehaviour::Steady
            | NodeBehaviour::Unstable { .. }
            | NodeBehaviour::StopsExploring { .. }
            | NodeBehaviour::Attends { .. }
            | NodeBehaviour::Visits { .. } => false,
        }
    }
}

/// A node's behaviour with the seed of its chances.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeededBehaviour {
    /// The behaviour.
    pub behaviour: NodeBehaviour,
    /// The seed.
    pub seed: u64,
    /// The node's number.
    pub node: usize,
}

impl SeededBehaviour {
    /// A node that takes part in every round.
    pub const STEADY: Self = Self { behaviour: NodeBehaviour::Steady, seed: 0, node: 0 };

    /// True if the node is away in a round, counted from 1.
    pub fn is_away(&self, round: u32) -> bool {
        self.behaviour.is_away(self.seed, self.node, round)
    }

    /// True if the node, if drawn, withholds its update. `exploiting_round` counts from 1 and is `None` while exploring.
    pub fn is_silent(&self, round: u32, exploiting_round: Option<u32>) -> bool {
        self.behaviour.is_silent(self.seed, self.node, round, exploiting_round)
    }
}

pub(super) fn behaviours(config: &ScenarioConfig, zetas: &[f64]) -> Vec<NodeBehaviour> {
    let stop = Poisson::new(STOP_MEAN).expect("the mean is positive and finite");
    let of = |(node, zeta): (usize, &f64)| match config.corruption {
        Corruption::Unstable => NodeBehaviour::Unstable { away: *zeta },
        Corruption::StrategicRandom => NodeBehaviour::StaysSilent { chance: SILENT },
        Corruption::StrategicPoisson => {
            let drawn: f64 = generator(config.seed, RandomPurpose::Stop, node, 0).sample(stop);
            NodeBehaviour::StopsAfter { exploiting_rounds: drawn as u32 }
        }
        Corruption::None
        | Corruption::FeatureNoise
        | Corruption::LabelNoise
        | Corruption::Quantity
        | Corruption::MissingValues
        | Corruption::Heterogeneity
        | Corruption::FewClasses
        | Corruption::NonStationary
        | Corruption::ShiftedClock
        | Corruption::StuckMeter
        | Corruption::MadeUp => NodeBehaviour::Steady,
    };
    zetas.iter().enumerate().map(of).collect()
}
