//! The coordinator's configuration file.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use evenhand_link::{Broker, BrokerError, Tls, TlsError, TlsFiles};
use evenhand_models::{LoadOptions, Model, ModelError, shipped};
use evenhand_protocol::identity::{Digest, NodeId};
use serde::{Deserialize, Serialize};

use crate::broker::{Access, Secret, SecretError};
use crate::dashboard::{DashboardError, DashboardOptions, Token};
use crate::fairness::{Appraisal, FairnessError};
use crate::federation::{
    Admission, Blueprint, Exploitation, Exploration, General, RuleError, Rules, Settings, Training,
};
use crate::strategy::Baseline;

/// The commented defaults, as `print-config` shows them.
pub const DEFAULT: &str = include_str!("default.toml");

/// Everything that can be configured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Who, how many, how long.
    pub federation: General,
    /// The model that is learnt.
    pub model: ModelConfig,
    /// What nodes compute.
    pub training: Training,
    /// How contributions are told.
    pub contribution: Appraisal,
    /// When they are known well enough.
    pub exploring: Exploration,
    /// Who is drawn then.
    pub exploiting: Exploitation,
    /// Who and what is let in.
    pub admission: Admission,
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

/// How nodes are reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BrokerConfig {
    /// `embedded`, or the address of another broker.
    pub url: String,
    /// Where the embedded one listens.
    pub listen: SocketAddr,
    /// Who may do what on it.
    pub access: AccessConfig,
    /// What the nodes' passwords on it follow from; without it, their names are believed.
    pub secret_file: Option<PathBuf>,
    /// With `mqtts://`: whose certificates to trust, instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// With `mqtts://`: our own certificate.
    pub certificate_file: Option<PathBuf>,
    /// And its key.
    pub key_file: Option<PathBuf>,
    /// The largest MQTT payload to send.
    pub payload_bytes_max: usize,
}

impl Default for BrokerConfig {
    fn default() -> Self {
        Self {
            url: EMBEDDED.into(),
            listen: SocketAddr::from(([127, 0, 0, 1], 1883)),
            access: AccessConfig::PerNode,
            secret_file: None,
            ca_file: None,
            certificate_file: None,
            key_file: None,
            payload_bytes_max: evenhand_protocol::chunk::PAYLOAD_BYTES_MAX,
        }
    }
}

/// What `broker.url` says if the coordinator brings its own.
const EMBEDDED: &str = "embedded";

/// Who may do what on the embedded broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessConfig {
    /// A node may use only what lies under its own name.
    #[default]
    PerNode,
    /// Everybody may do everything.
    Open,
}

/// Which broker is meant.
#[derive(Debug, Clone)]
pub enum BrokerChoice {
    /// The one the coordinator brings.
    Embedded {
        /// Where it listens.
        listen: SocketAddr,
        /// Who may do what.
        access: Access,
    },
    /// Another one.
    External {
        /// Its address.
        broker: Broker,
        /// How to trust it.
        tls: Option<Tls>,
    },
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
    Toml(#[from] toml::de::Error),
    /// Its values contradict each other.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// Nothing to score models on.
    #[error(
        "contribution.utility = \"{utility}\" scores models on validation data, of which this program has none; set \"cosine\" or \"projection\""
    )]
    Unscored {
        /// As written.
        utility: &'static str,
    },
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
        Ok(toml::from_str(text)?)
    }

    /// Checks everything that can be checked without a network.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.rules()?;
        let Appraisal { utility, device, .. } = self.contribution;
        if utility.is_scored() {
            return Err(ConfigError::Unscored { utility: utility.name() });
        }
        device.name().map_err(ConfigError::Device)?;
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
        options.token = config.token_file.as_deref().map(Token::read).transpose()?;
        options.hosts = config.hosts.clone();
        Ok(Some(options))
    }

    /// The federation's rules.
    pub fn rules(&self) -> Result<Rules, RuleError> {
        Rules::new(Settings {
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
        let config = &self.broker;
        if config.payload_bytes_max < 1024 {
            return Err(ConfigError::Payload(config.payload_bytes_max));
        }
        if config.url == EMBEDDED {
            return Ok(BrokerChoice::Embedded { listen: config.listen, access: self.access()? });
        }
        let broker = Broker::parse(&config.url)?;
        let files = TlsFiles {
            ca: config.ca_file.clone(),
            certificate: config.certificate_file.clone(),
            key: config.key_file.clone(),
        };
        let tls = if files == TlsFiles::default() { None } else { Some(Tls::load(&files)?) };
        Ok(BrokerChoice::External { broker, tls })
    }

    /// Who may do what on the embedded broker. What is a node's alone must stay so for whoever can connect: on
    /// this machine names are believed, from other machines they are proven.
    fn access(&self) -> Result<Access, ConfigError> {
        let BrokerConfig { listen, access, .. } = self.broker;
        let local = listen.ip().to_canonical().is_loopback();
        match (access, self.secret()?) {
            (AccessConfig::Open, _) if !local => Err(ConfigError::Exposed(listen)),
            (AccessConfig::Open, _) => Ok(Access::Open),
            (AccessConfig::PerNode, None) if !local => Err(ConfigError::Unproven(listen)),
            (AccessConfig::PerNode, secret) => Ok(Access::per_node(self.federation.name.clone(), secret)),
        }
    }

    fn secret(&self) -> Result<Option<Secret>, ConfigError> {
        Ok(self.broker.secret_file.as_deref().map(Secret::read).transpose()?)
    }

    /// A node's password on the embedded broker.
    pub fn password(&self, node: &NodeId) -> Result<String, ConfigError> {
        let secret =
            self.secret()?.filter(|_| self.broker.url == EMBEDDED).ok_or(ConfigError::NoPasswords)?;
        Ok(secret.password(&self.federation.name, node))
    }

    /// The model that is meant.
    pub fn blueprint(&self) -> Result<Blueprint, ConfigError> {
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
        Ok(Blueprint {
            graph: Digest(model.digest()),
            weights: model.initial_weights().into(),
            onnx: onnx.into(),
        })
    }
}

#[cfg(test)]
mod tests;
