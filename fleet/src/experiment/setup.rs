//! What one trial is: everything that its figures depend on.

use evenhand_fairness::Utility;
use evenhand_federation::OptimiserKind;
use serde::{Deserialize, Serialize};

use crate::corruption::Corruption;
use crate::data::Dataset;

/// One run of one strategy on one data set; equal setups have equal figures, timings aside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// What is learned.
    pub dataset: Dataset,
    /// What makes nodes differ.
    pub corruption: Corruption,
    /// The largest ζ.
    pub level: f64,
    /// Who receives the latest model, and why.
    pub contender: Contender,
    /// Where the published code differs from the paper: whom to follow.
    pub as_published: AsPublished,
    /// N.
    pub nodes: usize,
    /// T.
    pub rounds: u32,
    /// Samples of a node's batch.
    pub batch: usize,
    /// η.
    pub learning_rate: f64,
    /// What nodes make of their gradients.
    pub optimiser: OptimiserKind,
    /// What a coalition of updates is worth.
    pub utility: Utility,
    /// Nodes drawn in a round.
    pub k: usize,
    /// β.
    pub temperature: f64,
    /// τ.
    pub window: usize,
    /// M.
    pub watched: usize,
    /// α.
    pub strictness: f64,
    /// Samples of the next round on which models are scored, at most: a random choice, the same for all; 0 for all of them.
    #[serde(default)]
    pub questions: usize,
    /// Of everything random.
    pub seed: u64,
    /// A negative control: from the end of exploring on, the observer takes every reward to have gone to another node than
    /// was drawn; what is learned is the same.
    pub shuffled: bool,
}

/// A strategy with its choices, by the name it has on the command line; in the order of tables, ours first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, clap::ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Contender {
    /// The paper's stop rule and sampler
    Evenhand,
    /// The paper's stop rule; the sampler of the published code
    EvenhandWithoutReplacement,
    /// The paper's stop rule; draws without luck
    EvenhandCredit,
    /// The calibrated stop rule; the paper's sampler
    EvenhandCalibrated,
    /// The calibrated stop rule; draws without luck
    EvenhandCalibratedCredit,
    /// Everybody is drawn alike (McMahan et al. 2017)
    Fedavg,
    /// Nodes with higher losses weigh more, q = 0.1 (Li et al. 2020)
    QFfl,
    /// Sparser updates for those who contribute less (Xu et al. 2021)
    Fgfl,
    /// Nodes are drawn by the Shapley values of their last updates (Nagalapatti and Narayanam 2021)
    Gog,
    /// Everybody learns alone
    Standalone,
    /// Everybody keeps a model of its own, drawn towards the mean of all, λ = 0.3
    Cons,
}

/// Whom to follow where the published code differs from the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AsPublished {
    /// The text
    #[default]
    Paper,
    /// The repository
    Code,
}
