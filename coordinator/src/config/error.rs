//! Errors of the configuration.

use std::net::SocketAddr;
use std::path::PathBuf;

use evenhand_broker::{COORDINATOR, ListenerTlsError, SecretError};
use evenhand_fairness::FairnessError;
use evenhand_link::{BrokerError, TlsError};
use evenhand_models::ModelError;
use evenhand_program::config::TomlError;

use crate::dashboard::DashboardError;
use evenhand_federation::RuleError;

/// The reason why a configuration cannot be used: the key, and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum CoordinatorConfigError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The text is not a configuration.
    #[error("{0}")]
    Toml(#[from] TomlError),
    /// The values contradict each other.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// A password without an external broker.
    #[error(
        "broker.password_file is for another broker, and broker.url = \"embedded\" needs none; remove it, or name the broker in broker.url"
    )]
    UnusedPassword,
    /// Two user names.
    #[error("broker.url names a user and broker.password_file belongs to broker.username; give one of them")]
    TwoUserNames,
    /// The device is not available.
    #[error("contribution.{0}; set contribution.device = \"cpu\"")]
    Device(FairnessError),
    /// The broker's URL is malformed.
    #[error("broker.url: {0}")]
    Broker(#[from] BrokerError),
    /// Other machines could connect as any node.
    #[error(
        "broker.listen = {0} lets other machines connect, where nodes must prove their names: set broker.secret_file \
         (openssl rand -hex 32) and give each node the password that `evenhand-coordinator password` prints; or \
         listen on 127.0.0.1"
    )]
    UnverifiedNames(SocketAddr),
    /// Other machines could read every node's reward.
    #[error(
        "broker.access = \"open\" with broker.listen = {0} would show every node's reward to other machines; set it \
         to \"per-node\", or listen on 127.0.0.1"
    )]
    OpenToOthers(SocketAddr),
    /// The secret cannot be used.
    #[error("broker.secret_file: {0}")]
    Secret(#[from] SecretError),
    /// Nodes have no passwords.
    #[error(
        "nodes have passwords on the embedded broker only, and only with a broker.secret_file (openssl rand -hex 32)"
    )]
    NoPasswords,
    /// A node with the user name of the coordinator.
    #[error("the user name {COORDINATOR} is reserved for the coordinator; give the node another one")]
    ReservedName,
    /// The certificates cannot be used.
    #[error("broker: {0}")]
    Tls(#[from] TlsError),
    /// The embedded broker's certificate cannot be used.
    #[error("broker.listen_certificate_file, broker.listen_key_file: {0}")]
    ListenerTls(#[from] ListenerTlsError),
    /// The embedded broker's certificate without its key, or the other way round.
    #[error(
        "broker.listen_certificate_file and broker.listen_key_file belong together; name both files or none"
    )]
    UnpairedCertificate,
    /// A certificate for a listener that there is not.
    #[error(
        "broker.listen_certificate_file and broker.listen_key_file are for the embedded broker; remove them, or set \
         broker.url = \"embedded\""
    )]
    UnusedCertificate,
    /// The dashboard cannot be started.
    #[error(transparent)]
    Dashboard(#[from] DashboardError),
    /// The payload limit is too small for any message.
    #[error("broker.payload_bytes_max = {0} must be at least 1024")]
    Payload(usize),
    /// No packet holds so much.
    #[error(
        "broker.payload_bytes_max = {0} is more than a packet of MQTT can hold (256 MiB), and brokers refuse far less; leave the \
         default"
    )]
    PayloadTooLong(usize),
    /// The model was made for another loss.
    #[error(
        "training.loss = \"{configured}\" does not fit the model {model}, whose metadata name \"{known}\"; set \
         training.loss = \"{known}\""
    )]
    LossMismatch {
        /// As written.
        model: String,
        /// The configured loss.
        configured: &'static str,
        /// The model's.
        known: String,
    },
    /// Neither a file nor a known name.
    #[error(
        "model.onnx = \"{name}\" is neither a file nor one of the models that come with the program ({known})"
    )]
    UnknownModel {
        /// As written.
        name: String,
        /// The known names.
        known: String,
    },
    /// The model cannot be used.
    #[error("model.onnx: {0}")]
    Model(#[from] ModelError),
}
