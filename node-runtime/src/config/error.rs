//! Errors of a configuration, with the remedy.

use std::path::PathBuf;

use evenhand_link::{BrokerError, TlsError};
use evenhand_program::config::TomlError;

/// Reason why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NodeConfigError {
    /// A file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The text is no TOML, or has unknown or missing keys.
    #[error(transparent)]
    Syntax(#[from] TomlError),
    /// The source is one that this program was built without.
    #[error(
        "this evenhand-node was built without the source {kind:?}; build it with --features {kind}, or choose one of: {}",
        built()
    )]
    Feature {
        /// The source.
        kind: &'static str,
    },
    /// A value is out of range, or contradicts another.
    #[error("{0}")]
    Value(String),
    /// An environment variable is missing.
    #[error("environment variable {0:?} is not set; set it, or name a file instead")]
    Environment(String),
    /// The broker's address is malformed.
    #[error("url of a broker: {0}")]
    Broker(#[from] BrokerError),
    /// The certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

fn built() -> String {
    super::SourceConfig::kinds().collect::<Vec<_>>().join(", ")
}
