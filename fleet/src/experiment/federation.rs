//! The federation of a trial.

use evenhand_fairness::{ContributionConfig, Estimator, Weighting};
use evenhand_federation::{AdmissionConfig, FederationConfig, Policy, TrainingConfig};
use evenhand_protocol::identity::FederationId;

use super::setup::{Setup, StepKind};
use crate::data::{AsPublished, Dataset};
use crate::sim::{SimulationError, simulated_federation};

/// Rounds begin so far apart that joins and departures are known before the next.
const ROUND_INTERVAL_MS: u32 = 200;

/// Coalitions of each size that a contribution is estimated from: so many that the rest of its error is the data's.
const SAMPLES: usize = 256;

/// The federation's name.
pub(super) fn federation_name() -> Result<FederationId, SimulationError> {
    Ok(FederationId::new("experiment")?)
}

impl Setup {
    /// The configuration of the trial's federation: the published one, with what the variant changes.
    pub(super) fn federation(&self) -> Result<FederationConfig, SimulationError> {
        let as_code = self.as_published == AsPublished::Code;
        let mut config = simulated_federation(self.nodes);
        config.federation.policy = self.variant.policy();
        if config.federation.policy == Policy::Continuous {
            config.admission = AdmissionConfig::default();
        }
        config.federation.name = federation_name()?;
        config.federation.seed = self.seed;
        config.federation.rounds = self.rounds;
        config.federation.round_interval_ms = ROUND_INTERVAL_MS;
        if self.dataset == Dataset::DayAhead {
            config.training = TrainingConfig::default();
        }
        config.training.loss = self.dataset.loss();
        config.training.learning_rate = self.learning_rate;
        config.training.optimiser = self.optimiser;
        config.training.count_missing_as_zero = as_code && self.step == StepKind::Published;
        config.contribution = self.contribution(as_code);
        config.exploring.rule = self.variant.stop_rule();
        config.exploring.window = self.window as u32;
        config.exploring.tested_nodes = self.tested_nodes as u32;
        config.exploring.alpha = self.alpha;
        config.exploiting.k = self.k as u32;
        config.exploiting.temperature = self.temperature;
        config.exploiting.sampler = self.variant.sampler(as_code);
        Ok(config)
    }

    fn contribution(&self, as_code: bool) -> ContributionConfig {
        let config = ContributionConfig { utility: self.utility, ..Default::default() };
        if as_code {
            let estimator = Estimator::StratifiedIndependent;
            ContributionConfig { estimator, samples: 1, weighting: Weighting::Twice, ..config }
        } else {
            ContributionConfig { samples: SAMPLES, ..config }
        }
    }
}
