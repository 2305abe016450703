//! What is wrong with a configuration, said so that it can be put right.

use std::path::PathBuf;

use evenhand_link::{BrokerError, TlsError};
use evenhand_program::config::TomlError;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system says.
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
    /// A value makes no sense.
    #[error("{0}")]
    Value(String),
    /// A variable of the environment is missing.
    #[error("the environment has no variable {0:?}; set it, or name a file instead")]
    Environment(String),
    /// The broker's address is none.
    #[error("url of a broker: {0}")]
    Broker(#[from] BrokerError),
    /// The certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

fn built() -> String {
    super::SourceSection::kinds().collect::<Vec<_>>().join(", ")
}
