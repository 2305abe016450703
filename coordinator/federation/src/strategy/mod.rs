//! How nodes are drawn, and what becomes of their updates: one trait, one file a strategy.
//!
//! [`Evenhand`] is the product; the others are what it is compared with, and run in the same federation. A strategy is
//! part of the saved state: a coordinator that is killed goes on with what its strategy remembers.

mod cons;
mod evenhand;
mod fedavg;
mod fgfl;
mod gog;
mod qffl;
mod standalone;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::cons::Cons;
pub use self::evenhand::Evenhand;
pub use self::fedavg::FedAvg;
pub use self::fgfl::Fgfl;
pub use self::gog::Gog;
pub use self::qffl::QFfl;
pub use self::standalone::Standalone;

use crate::Weights;

/// What a strategy decides.
pub trait Strategy {
    /// Whether contributions are measured in rounds of everybody, before anybody is drawn.
    fn explores(&self) -> bool {
        false
    }

    /// Whether everybody is asked in every round, rather than k.
    fn asks_everybody(&self) -> bool {
        false
    }

    /// Whether [`merge`](Self::merge) wants the contributions of every round.
    fn measures(&self) -> bool {
        false
    }

    /// ϱ of the nodes in these columns, from their standings ψ and the temperature β.
    fn sampling_probabilities(&self, columns: &[usize], _standings: &[f64], _temperature: f64) -> Vec<f64> {
        vec![1.0 / columns.len() as f64; columns.len()]
    }

    /// What this strategy thinks of a node, where that is not the federation's ψ: the lower, the less it is given.
    fn opinion(&self, _column: usize) -> Option<f64> {
        None
    }

    /// What comes of a round's updates, of which there is at least one.
    fn merge(&mut self, round: &Harvested<'_>) -> Merged;
}

/// A round's updates, one entry for each that arrived unless said otherwise.
#[derive(Debug, Clone, Copy)]
pub struct Harvested<'a> {
    /// θ_{t−1}.
    pub latest: &'a Weights,
    /// By column: the model of each node that has one of its own.
    pub own: &'a [Weights],
    /// Nodes that are enrolled, or were.
    pub members: usize,
    /// The columns of those the operator shut out, ascending.
    pub removed: &'a [usize],
    /// The columns of those who were asked, ascending.
    pub asked: &'a [usize],
    /// The columns of those whose updates arrived, ascending.
    pub columns: &'a [usize],
    /// Δθᵢ.
    pub updates: &'a [&'a [f32]],
    /// pᵢ.
    pub shares: &'a [f64],
    /// Fᵢ: the loss of the model that the node was given, on its batch.
    pub losses: &'a [f64],
    /// φᵢ, if the strategy [`measures`](Strategy::measures).
    pub contributions: Option<&'a [f64]>,
    /// η.
    pub learning_rate: f64,
    /// The share of all nodes whose updates came, where whoever sent nothing counts as an update of zero; otherwise 1.
    pub presence: f64,
}

impl<'a> Harvested<'a> {
    /// The model that a node was given for this round.
    pub fn model(&self, column: usize) -> &'a Weights {
        self.own.get(column).unwrap_or(self.latest)
    }

    /// Whether a node still belongs to the federation.
    fn stays(&self, column: usize) -> bool {
        self.removed.binary_search(&column).is_err()
    }

    /// η of a step that many make together.
    fn shared_rate(&self) -> f64 {
        self.learning_rate * self.presence
    }

    /// θ_{t−1} − η Σ pᵢΔθᵢ.
    fn averaged(&self) -> Weights {
        self.latest.stepped(self.updates, self.shares, self.shared_rate())
    }

    /// Every node's own model after its own step: θᵢ − ηΔθᵢ for those who sent one, θᵢ for the others. Who is away
    /// shortens nobody else's.
    fn stepped_alone(&self) -> Vec<Weights> {
        let mut own: Vec<Weights> = (0..self.members).map(|column| self.model(column).clone()).collect();
        for (column, update) in self.columns.iter().zip(self.updates) {
            own[*column] = own[*column].stepped(&[update], &[1.0], self.learning_rate);
        }
        own
    }
}

/// What came of a round.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// θ_t.
    pub latest: Weights,
    /// By column: every node's own model; empty where all are given θ.
    pub own: Vec<Weights>,
}

impl Merged {
    fn shared(latest: Weights) -> Self {
        Self { latest, own: Vec::new() }
    }
}

/// Which strategy, as it is written in configurations and, but for `fedavg`, on command lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StrategyKind {
    /// Explore, then draw by standing.
    #[default]
    Evenhand,
    /// Draw everybody alike, from the first round on: the baseline without incentives.
    #[serde(alias = "fedavg")]
    FedAvg,
    /// As FedAvg, but nodes with higher losses weigh more.
    QFfl,
    /// Everybody takes part; who contributes less receives a sparser update.
    Fgfl,
    /// Draw by the contributions of earlier updates, from the first round on.
    Gog,
    /// Everybody learns alone.
    Standalone,
    /// Everybody learns alone, and is pulled towards the mean of all.
    Cons,
}

impl StrategyKind {
    /// The name in configurations and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Evenhand => "evenhand",
            Self::FedAvg => "fed-avg",
            Self::QFfl => "q-ffl",
            Self::Fgfl => "fgfl",
            Self::Gog => "gog",
            Self::Standalone => "standalone",
            Self::Cons => "cons",
        }
    }
}

/// Parameters of the strategies that Evenhand is compared with; the defaults are the published ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Baseline {
    /// q-FFL: how much a high loss counts; 0 is FedAvg.
    pub q: f64,
    /// FGFL: Γ, the norm of every update after normalisation.
    pub update_norm: f64,
    /// FGFL: the higher, the more equal the rewards.
    pub altruism: f64,
    /// FGFL: share of a reputation that is kept from round to round.
    pub reputation_kept: f64,
    /// GoG: share of a node's relevance that is kept from round to round.
    pub relevance_kept: f64,
    /// GoG: temperature of the draw.
    pub relevance_temperature: f64,
    /// Cons: λ, the share of the way to the mean that a model is pulled in each round.
    pub pull: f64,
}

impl Default for Baseline {
    fn default() -> Self {
        Self {
            q: 0.1,
            update_norm: 0.01,
            altruism: 2.0,
            reputation_kept: 0.95,
            relevance_kept: 0.75,
            relevance_temperature: 1.0,
            pull: 0.3,
        }
    }
}

/// A strategy and what it remembers, as it is saved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum AnyStrategy {
    /// See [`StrategyKind::Evenhand`].
    Evenhand(Evenhand),
    /// See [`StrategyKind::FedAvg`].
    FedAvg(FedAvg),
    /// See [`StrategyKind::QFfl`].
    QFfl(QFfl),
    /// See [`StrategyKind::Fgfl`].
    Fgfl(Fgfl),
    /// See [`StrategyKind::Gog`].
    Gog(Gog),
    /// See [`StrategyKind::Standalone`].
    Standalone(Standalone),
    /// See [`StrategyKind::Cons`].
    Cons(Cons),
}

/// What is in any variant, shared or exclusive as the enum is.
macro_rules! inner {
    ($any:expr) => {
        match $any {
            AnyStrategy::Evenhand(strategy) => strategy,
            AnyStrategy::FedAvg(strategy) => strategy,
            AnyStrategy::QFfl(strategy) => strategy,
            AnyStrategy::Fgfl(strategy) => strategy,
            AnyStrategy::Gog(strategy) => strategy,
            AnyStrategy::Standalone(strategy) => strategy,
            AnyStrategy::Cons(strategy) => strategy,
        }
    };
}

impl AnyStrategy {
    /// A strategy that has not seen a round yet.
    pub fn new(kind: StrategyKind, baseline: &Baseline) -> Self {
        match kind {
            StrategyKind::Evenhand => Self::Evenhand(Evenhand),
            StrategyKind::FedAvg => Self::FedAvg(FedAvg),
            StrategyKind::QFfl => Self::QFfl(QFfl::new(baseline)),
            StrategyKind::Fgfl => Self::Fgfl(Fgfl::new(baseline)),
            StrategyKind::Gog => Self::Gog(Gog::new(baseline)),
            StrategyKind::Standalone => Self::Standalone(Standalone),
            StrategyKind::Cons => Self::Cons(Cons::new(baseline)),
        }
    }

    /// Which one it is.
    pub fn kind(&self) -> StrategyKind {
        match self {
            Self::Evenhand(_) => StrategyKind::Evenhand,
            Self::FedAvg(_) => StrategyKind::FedAvg,
            Self::QFfl(_) => StrategyKind::QFfl,
            Self::Fgfl(_) => StrategyKind::Fgfl,
            Self::Gog(_) => StrategyKind::Gog,
            Self::Standalone(_) => StrategyKind::Standalone,
            Self::Cons(_) => StrategyKind::Cons,
        }
    }

    /// The strategy itself.
    pub fn get(&self) -> &dyn Strategy {
        inner!(self)
    }

    /// The strategy itself, to be told of a round.
    pub fn get_mut(&mut self) -> &mut dyn Strategy {
        inner!(self)
    }
}

/// The mean of models, summed in f64 in their order; none of none.
fn mean<'a>(models: impl Iterator<Item = &'a Weights>) -> Option<Vec<f64>> {
    let mut sum = Vec::new();
    let mut count = 0.0;
    for model in models {
        sum.resize(model.values().len(), 0.0f64);
        for (sum, value) in sum.iter_mut().zip(model.values()) {
            *sum += f64::from(*value);
        }
        count += 1.0;
    }
    sum.iter_mut().for_each(|sum| *sum /= count);
    (count > 0.0).then_some(sum)
}

/// Weights from values in f64.
fn weights(values: impl Iterator<Item = f64>) -> Weights {
    Weights::new(values.map(|value| value as f32).collect::<Arc<[f32]>>())
}
