//! Settings of a worth: the scenario, and how coalitions are trained and sampled.

use serde::{Deserialize, Serialize};

use super::node_set::NODES_MAX;
use crate::data::{AsPublished, Dataset};
use crate::experiment::rate;
use crate::experiment::setup::Setup;
use crate::experiment::setup_check::SettingError;
use crate::experiment::variant::Variant;
use crate::scenario::{Corruption, ScenarioConfig};

/// Share of the rounds whose data are trained on; models are judged on what comes later.
const TRAINED_SHARE: f64 = 0.75;
/// The largest count of anything.
const COUNT_MAX: usize = 1_000_000;

/// Everything that the worth of one seed depends on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorthSettings {
    /// The data set.
    pub dataset: Dataset,
    /// The corruption that makes nodes differ.
    pub corruption: Corruption,
    /// The largest ζ.
    pub level: f64,
    /// The authority where the published code differs from the paper.
    pub as_published: AsPublished,
    /// N.
    pub nodes: usize,
    /// Rounds of data.
    pub rounds: u32,
    /// Samples of a node in a round.
    pub batch: usize,
    /// Seed of everything random.
    pub seed: u64,
    /// Coalitions that are trained.
    pub coalitions: usize,
    /// Steps of each training.
    pub steps: usize,
    /// Samples of a step.
    pub step_samples: usize,
    /// η; where there is none, the useful one is found.
    pub learning_rate: Option<f64>,
    /// Held-out samples that models are judged on, at most.
    pub held_out: usize,
}

impl WorthSettings {
    /// Settings by default: the published scenario.
    pub fn published(dataset: Dataset, corruption: Corruption, as_published: AsPublished, seed: u64) -> Self {
        let setup = Setup::published(dataset, corruption, Variant::Fedavg, as_published, seed);
        Self {
            dataset,
            corruption,
            level: setup.level,
            as_published,
            nodes: setup.nodes,
            rounds: setup.rounds,
            batch: setup.batch,
            seed,
            coalitions: 10 * setup.nodes,
            steps: 100,
            step_samples: 16,
            learning_rate: None,
            held_out: 400,
        }
    }

    /// The scenario.
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

    /// The last round whose data are trained on.
    pub fn trained_rounds(&self) -> u32 {
        ((f64::from(self.rounds) * TRAINED_SHARE) as u32).max(1)
    }

    /// The learning rates to choose from, in the order of [`rate::FACTORS`]; one where it is given.
    pub fn learning_rates(&self) -> Vec<f64> {
        if let Some(rate) = self.learning_rate {
            return vec![rate];
        }
        let Self { dataset, corruption, as_published, seed, .. } = *self;
        let published = Setup::published(dataset, corruption, Variant::Fedavg, as_published, seed);
        rate::FACTORS.map(|factor| rate::scaled(published.learning_rate, factor)).to_vec()
    }

    /// The control: the same with equally good data for all nodes; none where they are already alike.
    pub fn control(&self) -> Option<Self> {
        let differ = self.level > 0.0 && self.corruption != Corruption::None;
        differ.then(|| Self { level: 0.0, ..self.clone() })
    }

    /// An error if a setting is outside its range.
    pub fn check(&self) -> Result<(), SettingError> {
        let countable = |count: usize| (1..=COUNT_MAX).contains(&count);
        let samples = self.nodes.saturating_mul(self.batch).saturating_mul(self.rounds as usize + 1);
        let rules = [
            (
                "nodes",
                self.nodes.to_string(),
                (2..=NODES_MAX).contains(&self.nodes),
                "between 2 and 128 nodes",
            ),
            ("rounds", self.rounds.to_string(), self.rounds >= 2, "at least 2: some are held out"),
            ("batch", self.batch.to_string(), countable(self.batch), "between 1 and 1000000 samples"),
            ("rounds", self.rounds.to_string(), samples <= 20 * COUNT_MAX, "at most 20000000 samples in all"),
            (
                "coalitions",
                self.coalitions.to_string(),
                (self.nodes..=COUNT_MAX).contains(&self.coalitions),
                "at least as many as nodes, at most 1000000",
            ),
            ("steps", self.steps.to_string(), countable(self.steps), "between 1 and 1000000 steps"),
            (
                "step-samples",
                self.step_samples.to_string(),
                countable(self.step_samples) && self.step_samples.saturating_mul(self.steps) <= COUNT_MAX,
                "at least 1, and at most 1000000 over all steps",
            ),
            (
                "learning-rate",
                self.learning_rate.unwrap_or(0.0).to_string(),
                self.learning_rate.is_none_or(|rate| rate > 0.0 && rate.is_finite()),
                "a number above 0",
            ),
            (
                "held-out",
                self.held_out.to_string(),
                countable(self.held_out),
                "between 1 and 1000000 samples",
            ),
            ("level", self.level.to_string(), (0.0..=1.0).contains(&self.level), "between 0 and 1"),
        ];
        match rules.into_iter().find(|(_, _, holds, _)| !holds) {
            None => Ok(()),
            Some((flag, value, _, expected)) => Err(SettingError { flag, value, expected: expected.into() }),
        }
    }
}
