//! How nodes are reached: which broker, and with what rights.

use std::net::SocketAddr;
use std::path::PathBuf;

use evenhand_link::{Broker, Tls, TlsFiles};
use evenhand_protocol::identity::{FederationId, NodeId};
use serde::{Deserialize, Serialize};

use super::ConfigError;
use evenhand_broker::{Access, COORDINATOR, Secret};

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
    /// Our name towards another broker that asks for a password.
    pub username: String,
    /// A file whose content is that password.
    pub password_file: Option<PathBuf>,
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
            username: COORDINATOR.into(),
            password_file: None,
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

impl BrokerConfig {
    /// The broker that is meant by the coordinator of this federation.
    pub(super) fn choice(&self, federation: &FederationId) -> Result<BrokerChoice, ConfigError> {
        if self.payload_bytes_max < 1024 {
            return Err(ConfigError::Payload(self.payload_bytes_max));
        }
        if self.url == EMBEDDED {
            if self.password_file.is_some() {
                return Err(ConfigError::OwnPassword);
            }
            return Ok(BrokerChoice::Embedded { listen: self.listen, access: self.access(federation)? });
        }
        let files = TlsFiles {
            ca: self.ca_file.clone(),
            certificate: self.certificate_file.clone(),
            key: self.key_file.clone(),
        };
        let tls = if files == TlsFiles::default() { None } else { Some(Tls::load(&files)?) };
        Ok(BrokerChoice::External { broker: self.external()?, tls })
    }

    /// The address of another broker, and who we are there.
    fn external(&self) -> Result<Broker, ConfigError> {
        let broker = Broker::parse(&self.url)?;
        let Some(path) = &self.password_file else { return Ok(broker) };
        if broker.user().is_some() {
            return Err(ConfigError::TwoNames);
        }
        let password = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.clone(), source })?;
        Ok(broker.with_credentials(&self.username, password.trim_end_matches(['\r', '\n'])))
    }

    /// Who may do what on the embedded broker. What is a node's alone must stay so for whoever can connect: on
    /// this machine names are believed, from other machines they are proven.
    fn access(&self, federation: &FederationId) -> Result<Access, ConfigError> {
        let listen = self.listen;
        let local = listen.ip().to_canonical().is_loopback();
        match (self.access, self.secret()?) {
            (AccessConfig::Open, _) if !local => Err(ConfigError::Exposed(listen)),
            (AccessConfig::Open, _) => Ok(Access::Open),
            (AccessConfig::PerNode, None) if !local => Err(ConfigError::Unproven(listen)),
            (AccessConfig::PerNode, secret) => Ok(Access::per_node(federation.clone(), secret)),
        }
    }

    fn secret(&self) -> Result<Option<Secret>, ConfigError> {
        Ok(self.secret_file.as_deref().map(Secret::read).transpose()?)
    }

    /// A node's password on the embedded broker.
    pub(super) fn password(&self, federation: &FederationId, node: &NodeId) -> Result<String, ConfigError> {
        if node.as_str() == COORDINATOR {
            return Err(ConfigError::NodeName);
        }
        let secret = self.secret()?.filter(|_| self.url == EMBEDDED).ok_or(ConfigError::NoPasswords)?;
        Ok(secret.password(federation, node))
    }
}
