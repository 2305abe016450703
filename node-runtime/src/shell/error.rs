//! Why a node cannot run.

use std::net::SocketAddr;

use evenhand_link::LinkError;
use evenhand_program::exit::Exit;

use crate::config::ConfigError;
use crate::source::SourceError;

/// Why a node cannot run.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The link cannot be set up.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A recorded source that is read by rounds does not open.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The port for Prometheus is taken.
    #[error("cannot listen on {listen}: {cause}; choose another metrics.listen")]
    Metrics {
        /// Where it should have been.
        listen: SocketAddr,
        /// What the system says.
        cause: std::io::Error,
    },
    /// The state folder cannot be used at all; one that is only full is waited for.
    #[error("cannot write to node.state_folder: {cause}; it must be a writable folder")]
    State {
        /// What the system says.
        cause: std::io::Error,
    },
}

impl NodeError {
    /// What the program tells the shell when it ends because of it.
    pub fn exit(&self) -> Exit {
        match self {
            NodeError::Config(_) | NodeError::State { .. } | NodeError::Metrics { .. } => Exit::Config,
            NodeError::Link(error) => error.exit(),
            NodeError::Source(_) => Exit::Data,
        }
    }
}
