//! The coordinator's configuration file.
//!
//! One file a section: its type, defaults, documentation and checks. `print-config` assembles the commented default file from
//! them; see [`evenhand_program::config::document`].

mod broker;
mod dashboard;
mod error;
mod joining;
mod model;
mod state;

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use evenhand_fairness::ContributionConfig;
use evenhand_link::CertificateFacts;
use evenhand_program::config::{self, document};
use evenhand_program::log::LogConfig;
use evenhand_protocol::identity::NodeId;
use serde::{Deserialize, Serialize};

use crate::dashboard::DashboardOptions;
use crate::joining::JoinPolicy;
use evenhand_federation::{
    AdmissionConfig, ContinuousConfig, ExploitingConfig, ExploringConfig, FederationConfig, GeneralConfig,
    InitialModel, RuleError, Rules, TrainingConfig,
};

pub use self::broker::{AccessConfig, BrokerChoice, BrokerConfig};
pub use self::dashboard::DashboardConfig;
pub use self::error::CoordinatorConfigError;
pub use self::joining::{JoinChoice, JoiningConfig};
pub use self::model::ModelConfig;
pub use self::state::StateConfig;

/// The first lines of the default file.
const HEADER: &str = "\
## The coordinator of an Evenhand federation.
## Every key is shown with its default; remove the '#' to change it.
";

/// The list of sections: the fields of the configuration, and the default file in the same order.
macro_rules! sections {
    ($($name:ident: $section:ty = $source:expr),* $(,)?) => {
        /// The configuration file as written.
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct CoordinatorConfig {
            $(
                #[doc = concat!("The section `[", stringify!($name), "]`.")]
                pub $name: $section,
            )*
        }

        /// The commented default file, as `print-config` prints it.
        pub fn default_toml() -> String {
            let sections = [$(document::section::<$section>(stringify!($name), $source)),*];
            format!("{HEADER}\n{}", sections.join("\n"))
        }
    };
}

sections! {
    federation: GeneralConfig = GeneralConfig::SOURCE,
    model: ModelConfig = ModelConfig::SOURCE,
    training: TrainingConfig = TrainingConfig::SOURCE,
    continuous: ContinuousConfig = ContinuousConfig::SOURCE,
    contribution: ContributionConfig = ContributionConfig::SOURCE,
    exploring: ExploringConfig = ExploringConfig::SOURCE,
    exploiting: ExploitingConfig = ExploitingConfig::SOURCE,
    admission: AdmissionConfig = AdmissionConfig::SOURCE,
    joining: JoiningConfig = JoiningConfig::SOURCE,
    broker: BrokerConfig = BrokerConfig::SOURCE,
    dashboard: DashboardConfig = DashboardConfig::SOURCE,
    state: StateConfig = StateConfig::SOURCE,
    log: LogConfig = LogConfig::SOURCE,
}

impl CoordinatorConfig {
    /// The configuration in a file, checked.
    pub fn load(path: &Path) -> Result<Self, CoordinatorConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| CoordinatorConfigError::Read { path: path.to_owned(), source })?;
        let config = Self::parse(&text)?;
        config.check()?;
        Ok(config)
    }

    /// The configuration in a text, not yet checked.
    pub fn parse(text: &str) -> Result<Self, CoordinatorConfigError> {
        Ok(config::parse(text)?)
    }

    /// Checks everything that can be checked without a network.
    pub fn check(&self) -> Result<(), CoordinatorConfigError> {
        self.rules()?;
        self.contribution.device.driver_name().map_err(CoordinatorConfigError::Device)?;
        self.broker()?;
        self.model.check_loss(&self.initial_model()?, self.training.loss)?;
        self.dashboard()?;
        Ok(())
    }

    /// The federation's rules.
    pub fn rules(&self) -> Result<Rules, RuleError> {
        Rules::new(FederationConfig {
            federation: self.federation.clone(),
            training: self.training.clone(),
            continuous: self.continuous.clone(),
            contribution: self.contribution,
            exploring: self.exploring.clone(),
            exploiting: self.exploiting.clone(),
            admission: self.admission.clone(),
        })
    }

    /// The model with its initial weights.
    pub fn initial_model(&self) -> Result<InitialModel, CoordinatorConfigError> {
        self.model.initial_model()
    }

    /// The broker to use.
    pub fn broker(&self) -> Result<BrokerChoice, CoordinatorConfigError> {
        self.broker.choice(&self.federation.name)
    }

    /// Who may join.
    pub fn join_policy(&self) -> JoinPolicy {
        self.joining.policy(self.broker.is_local())
    }

    /// Sentences about what works and is not safe, or not for long: secrets that others can read, guess or listen to,
    /// certificates that end.
    pub fn concerns(&self) -> Vec<String> {
        let mut concerns = self.broker.concerns();
        concerns.extend(self.dashboard.concerns());
        concerns
    }

    /// Sentences about certificates that have ended or are about to.
    pub fn expiry_concerns(&self) -> Vec<String> {
        self.broker.expiry_concerns()
    }

    /// The certificates of the coordinator, by the name of their use.
    pub fn certificates(&self) -> Vec<(&'static str, CertificateFacts)> {
        self.broker.certificates().into_iter().map(|(name, _, facts)| (name, facts)).collect()
    }

    /// A node's password on the embedded broker.
    pub fn password(&self, node: &NodeId) -> Result<String, CoordinatorConfigError> {
        self.broker.password(&self.federation.name, node)
    }

    /// The options of the dashboard, unless it is disabled.
    pub fn dashboard(&self) -> Result<Option<DashboardOptions>, CoordinatorConfigError> {
        self.dashboard.options()
    }
}

/// Milliseconds since 1970.
fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
