//! The coordinator's configuration file.

mod broker;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use evenhand_link::{BrokerError, TlsError};
use evenhand_models::{LoadOptions, Model, ModelError, shipped};
use evenhand_program::config::{self, TomlError};
use evenhand_protocol::identity::{Digest, NodeId};
use serde::{Deserialize, Serialize};

use crate::dashboard::{DashboardError, DashboardOptions, OperatorToken};
use evenhand_broker::{COORDINATOR, SecretError};
use evenhand_fairness::{ContributionConfig, FairnessError};
use evenhand_federation::strategy::Baseline;
use evenhand_federation::{
    AdmissionConfig, ExploitingConfig, ExploringConfig, FederationConfig, GeneralConfig, InitialModel,
    RuleError, Rules, TrainingConfig,
};

pub use self::broker::{AccessConfig, BrokerChoice, BrokerConfig};

/// The commented defaults, as `print-config` shows them.
pub const DEFAULT: &str = include_str!("default.toml");

/// Everything that can be configured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Who, how many, how long.
    pub federation: GeneralConfig,
    /// The model that is learnt.
    pub model: ModelConfig,
    /// What nodes compute.
    pub training: TrainingConfig,
    /// How contributions are told.
    pub contribution: ContributionConfig,
    /// When they are known well enough.
    pub exploring: ExploringConfig,
    /// Who is drawn then.
    pub exploiting: ExploitingConfig,
    /// Who and what is let in.
    pub admission: AdmissionConfig,
    /// Of the strategies that are not ours.
    pub baseline: Baseline,
    /// How nodes are reached.
    pub broker: BrokerConfig,
    /// What is shown, where and to whom.
    pub dashboard: DashboardConfig,
    /// What is kept on disk.
    pub state: StateConfig,
}

/// What is shown, where and to whom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DashboardConfig {
    /// Whether it is served at all.
    pub enabled: bool,
    /// Where it listens.
    pub listen: SocketAddr,
    /// A file whose content lets the operator command; without it the dashboard is read-only.
    pub token_file: Option<PathBuf>,
    /// Names under which browsers reach it, besides addresses and `localhost`.
    pub hosts: Vec<String>,
}

impl Default for DashboardConfig {
    fn default() -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], 8787));
        Self { enabled: true, listen, token_file: None, hosts: Vec::new() }
    }
}

/// What is kept on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StateConfig {
    /// The folder of the federation's state; empty keeps nothing.
    pub folder: PathBuf,
    /// Updates of at least so many last rounds are kept for audits; 0 keeps all.
    pub keep_rounds: u32,
}

impl Default for StateConfig {
    fn default() -> Self {
        Self { folder: "evenhand-state".into(), keep_rounds: 1000 }
    }
}

/// The model that is learnt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// An ONNX file, or the name of one that comes with the program.
    pub onnx: String,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self { onnx: "electricity-rnn".into() }
    }
}

/// What is wrong with a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The file is no configuration.
    #[error("{0}")]
    Toml(#[from] TomlError),
    /// Its values contradict each other.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// A password for nobody.
    #[error(
        "broker.password_file is for another broker, and broker.url = \"embedded\" needs none; remove it, or name the broker in broker.url"
    )]
    OwnPassword,
    /// Who we are is said twice.
    #[error("broker.url names a user and broker.password_file belongs to broker.username; give one of them")]
    TwoNames,
    /// What shall multiply the updates cannot be had.
    #[error("contribution.{0}; set contribution.device = \"cpu\"")]
    Device(FairnessError),
    /// The broker's address is none.
    #[error("broker.url: {0}")]
    Broker(#[from] BrokerError),
    /// Other machines could say they are any node.
    #[error(
        "broker.listen = {0} lets other machines in, where nodes must prove their names: set broker.secret_file \
         (openssl rand -hex 32) and give each node the password that `evenhand-coordinator password` prints; or \
         listen on 127.0.0.1"
    )]
    Unproven(SocketAddr),
    /// Other machines could read every node's reward.
    #[error(
        "broker.access = \"open\" with broker.listen = {0} would show every node's reward to other machines; set it \
         to \"per-node\", or listen on 127.0.0.1"
    )]
    Exposed(SocketAddr),
    /// The secret cannot be used.
    #[error("broker.secret_file: {0}")]
    Secret(#[from] SecretError),
    /// There are no passwords.
    #[error(
        "nodes have passwords on the embedded broker only, and only with a broker.secret_file (openssl rand -hex 32)"
    )]
    NoPasswords,
    /// A node that the broker would take for the coordinator.
    #[error("the broker keeps the name {COORDINATOR} for the coordinator; give the node another one")]
    NodeName,
    /// The certificates cannot be used.
    #[error("broker: {0}")]
    Tls(#[from] TlsError),
    /// The dashboard cannot be had.
    #[error(transparent)]
    Dashboard(#[from] DashboardError),
    /// The payload limit is too small to carry anything.
    #[error("broker.payload_bytes_max = {0} must be at least 1024")]
    Payload(usize),
    /// Neither a file nor a name.
    #[error(
        "model.onnx = {name:?} is neither a file nor one of the models that come with the program ({known})"
    )]
    UnknownModel {
        /// What was given.
        name: String,
        /// What would be right.
        known: String,
    },
    /// The model cannot be used.
    #[error("model.onnx: {0}")]
    Model(#[from] ModelError),
}

impl Config {
    /// Reads a configuration, and checks all of it.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let config = Self::parse(&text)?;
        config.check()?;
        Ok(config)
    }

    /// Reads a configuration from text.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Ok(config::parse(text)?)
    }

    /// Checks everything that can be checked without a network.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.rules()?;
        self.contribution.device.driver_name().map_err(ConfigError::Device)?;
        self.broker()?;
        self.blueprint()?;
        self.dashboard()?;
        Ok(())
    }

    /// The dashboard that is meant, if any.
    pub fn dashboard(&self) -> Result<Option<DashboardOptions>, ConfigError> {
        let config = &self.dashboard;
        if !config.enabled {
            return Ok(None);
        }
        let mut options = DashboardOptions::new(config.listen);
        options.token = config.token_file.as_deref().map(OperatorToken::read).transpose()?;
        options.hosts = config.hosts.clone();
        Ok(Some(options))
    }

    /// The federation's rules.
    pub fn rules(&self) -> Result<Rules, RuleError> {
        Rules::new(FederationConfig {
            federation: self.federation.clone(),
            training: self.training.clone(),
            contribution: self.contribution,
            exploring: self.exploring.clone(),
            exploiting: self.exploiting.clone(),
            admission: self.admission.clone(),
            baseline: self.baseline.clone(),
        })
    }

    /// The broker that is meant.
    pub fn broker(&self) -> Result<BrokerChoice, ConfigError> {
        self.broker.choice(&self.federation.name)
    }

    /// A node's password on the embedded broker.
    pub fn password(&self, node: &NodeId) -> Result<String, ConfigError> {
        self.broker.password(&self.federation.name, node)
    }

    /// The model that is meant.
    pub fn blueprint(&self) -> Result<InitialModel, ConfigError> {
        let name = &self.model.onnx;
        let onnx: Vec<u8> = match shipped::by_name(name) {
            Some(bytes) => bytes.to_vec(),
            None if Path::new(name).exists() => std::fs::read(name)
                .map_err(|source| ConfigError::Read { path: PathBuf::from(name), source })?,
            None => {
                return Err(ConfigError::UnknownModel {
                    name: name.clone(),
                    known: shipped::NAMES.join(", "),
                });
            }
        };
        let model = Model::load(&onnx, &LoadOptions::default())?;
        Ok(InitialModel {
            graph: Digest(model.digest()),
            weights: model.initial_weights().into(),
            onnx: onnx.into(),
        })
    }
}

#[cfg(test)]
mod tests;
