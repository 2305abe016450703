//! The setup of a trial: everything that its figures depend on.

use evenhand_fairness::Utility;
use evenhand_federation::OptimiserKind;
use evenhand_node::config::{PrivacyConfig, PrivacyUnit};
use evenhand_node::privacy::noise_for;
use serde::{Deserialize, Serialize};

use super::stop_prediction::StopPrediction;
use super::variant::Variant;
use crate::data::{AsPublished, Dataset};
use crate::scenario::{Corruption, QualitySpread, ScenarioConfig};

/// The length of the common step where not everybody answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// The mean of the updates that came: the product's
    Mean,
    /// The sum of pᵢΔθᵢ over those that came, with pᵢ over all nodes: k of N move the model k/N as far
    Published,
}

/// One run of one variant on one data set; equal setups have equal figures, timings aside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// The data set.
    pub dataset: Dataset,
    /// The corruption that makes nodes differ.
    pub corruption: Corruption,
    /// The largest ζ.
    pub level: f64,
    /// The nodes whose data are worse.
    #[serde(default)]
    pub spread: QualitySpread,
    /// The variant: a strategy with its stop rule and sampler.
    pub variant: Variant,
    /// The authority where the published code differs from the paper.
    pub as_published: AsPublished,
    /// N.
    pub nodes: usize,
    /// T.
    pub rounds: u32,
    /// Samples of a node's batch.
    pub batch: usize,
    /// η.
    pub learning_rate: f64,
    /// The optimiser of the nodes.
    pub optimiser: OptimiserKind,
    /// The utility of a coalition of updates.
    pub utility: Utility,
    /// The length of the step where not everybody answers.
    pub step: StepKind,
    /// Nodes drawn in a round.
    pub k: usize,
    /// β.
    pub temperature: f64,
    /// τ.
    pub window: usize,
    /// M.
    pub tested_nodes: usize,
    /// α.
    pub alpha: f64,
    /// Share of the nodes that contribute from five rounds before exploring would end.
    #[serde(default = "everybody")]
    pub attendance: f64,
    /// What the node of the highest standing does when it takes exploring to be over.
    #[serde(default)]
    pub prediction: StopPrediction,
    /// Samples of the next round on which models are scored, at most: a random choice, the same for all; 0 for all of them.
    #[serde(default)]
    pub evaluation_samples: usize,
    /// ε at δ = 10⁻⁵ of a node's noise over the whole trial: for each sample, or for a day's readings where nodes read days; 0 for
    /// no noise.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub epsilon: f64,
    /// With noise, the length to which gradients are clipped.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub clip: f64,
    /// Seed of everything random.
    pub seed: u64,
    /// A negative control: from the end of exploring on, the evaluator takes every reward to have gone to another node than
    /// was drawn; what is learned is the same.
    pub shuffled: bool,
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

fn one() -> f64 {
    1.0
}

fn is_one(value: &f64) -> bool {
    *value == 1.0
}

/// δ of trials with noise.
const DELTA: f64 = 1e-5;
/// Messages that a day's readings have an influence on in rounds of a day, and those that a sample has, which is seen once: a
/// measurement and an update each. A sample that is seen again counts again.
const MESSAGES: (u32, u32) = (2 * 59, 2);

fn everybody() -> f64 {
    1.0
}

impl Setup {
    /// The privacy of a trial's nodes: no floor, since samples come in the batches of the paper, of three, and readings in whole
    /// days.
    pub(super) fn privacy(&self, is_read: bool, passes: usize) -> PrivacyConfig {
        let none = PrivacyConfig::none();
        if self.epsilon == 0.0 {
            return none;
        }
        let (messages, unit) = match is_read {
            true => (MESSAGES.0.min(2 * self.rounds), PrivacyUnit::Day),
            false => (MESSAGES.1.saturating_mul(passes as u32), PrivacyUnit::Row),
        };
        let noise = noise_for(self.epsilon, DELTA, messages);
        PrivacyConfig { noise, clip: self.clip, unit, delta: DELTA, ..none }
    }

    /// The control: the same trial with equally good data for all nodes; none where they are already alike.
    pub fn control(&self) -> Option<Self> {
        self.scenario().control().map(|scenario| Self { level: scenario.level, ..self.clone() })
    }

    /// The scenario of the trial.
    pub fn scenario(&self) -> ScenarioConfig {
        ScenarioConfig {
            dataset: self.dataset,
            corruption: self.corruption,
            level: self.level,
            spread: self.spread,
            as_published: self.as_published,
            nodes: self.nodes,
            rounds: self.rounds,
            batch: self.batch,
            seed: self.seed,
        }
    }
}
