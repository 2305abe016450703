//! The setup of a trial: everything that its figures depend on.

use evenhand_fairness::Utility;
use evenhand_federation::OptimiserKind;
use serde::{Deserialize, Serialize};

use super::variant::Variant;
use crate::data::{AsPublished, Dataset};
use crate::scenario::{Corruption, ScenarioConfig};

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
    /// Samples of the next round on which models are scored, at most: a random choice, the same for all; 0 for all of them.
    #[serde(default)]
    pub evaluation_samples: usize,
    /// Seed of everything random.
    pub seed: u64,
    /// A negative control: from the end of exploring on, the evaluator takes every reward to have gone to another node than
    /// was drawn; what is learned is the same.
    pub shuffled: bool,
}

impl Setup {
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
            as_published: self.as_published,
            nodes: self.nodes,
            rounds: self.rounds,
            batch: self.batch,
            seed: self.seed,
        }
    }
}
