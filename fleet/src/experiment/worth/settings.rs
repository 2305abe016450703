//! Settings of a worth: the scenario, and how coalitions are trained and sampled.

use evenhand_federation::TrainingConfig;
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
    /// The nodes and their data.
    pub scenario: ScenarioConfig,
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
            scenario: setup.scenario(),
            coalitions: 10 * setup.nodes,
            steps: 100,
            step_samples: 16,
            learning_rate: None,
            held_out: 400,
        }
    }

    /// The same with another seed.
    pub fn with_seed(&self, seed: u64) -> Self {
        Self { scenario: ScenarioConfig { seed, ..self.scenario }, ..self.clone() }
    }

    /// The last round whose data are trained on.
    pub fn trained_rounds(&self) -> u32 {
        ((f64::from(self.scenario.rounds) * TRAINED_SHARE) as u32).max(1)
    }

    /// The learning rates to choose from, in the order of [`rate::FACTORS`]; one where it is given.
    pub fn learning_rates(&self) -> Vec<f64> {
        if let Some(rate) = self.learning_rate {
            return vec![rate];
        }
        let ScenarioConfig { dataset, corruption, as_published, seed, .. } = self.scenario;
        let published = Setup::published(dataset, corruption, Variant::Fedavg, as_published, seed);
        // One training, not the sum of local ones: its steps are theirs.
        let base = match dataset {
            Dataset::DayAhead => f64::from(TrainingConfig::default().local_learning_rate) / 10.0,
            _ => published.learning_rate,
        };
        rate::FACTORS.map(|factor| rate::scaled(base, factor)).to_vec()
    }

    /// The control: the same with equally good data for all nodes; none where they are already alike.
    pub fn control(&self) -> Option<Self> {
        self.scenario.control().map(|scenario| Self { scenario, ..self.clone() })
    }

    /// An error if a setting is outside its range.
    pub fn check(&self) -> Result<(), SettingError> {
        let ScenarioConfig { level, nodes, rounds, batch, .. } = self.scenario;
        let countable = |count: usize| (1..=COUNT_MAX).contains(&count);
        let samples = nodes.saturating_mul(batch).saturating_mul(rounds as usize + 1);
        let rules = [
            ("nodes", nodes.to_string(), (2..=NODES_MAX).contains(&nodes), "between 2 and 128 nodes"),
            ("rounds", rounds.to_string(), rounds >= 2, "at least 2: some are held out"),
            ("batch", batch.to_string(), countable(batch), "between 1 and 1000000 samples"),
            ("rounds", rounds.to_string(), samples <= 20 * COUNT_MAX, "at most 20000000 samples in all"),
            (
                "coalitions",
                self.coalitions.to_string(),
                (nodes..=COUNT_MAX).contains(&self.coalitions),
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
            ("level", level.to_string(), (0.0..=1.0).contains(&level), "between 0 and 1"),
        ];
        match rules.into_iter().find(|(_, _, holds, _)| !holds) {
            None => Ok(()),
            Some((flag, value, _, expected)) => Err(SettingError { flag, value, expected: expected.into() }),
        }
    }
}
