//! Errors that end a node.

use std::net::SocketAddr;

use evenhand_link::LinkError;
use evenhand_program::exit::Exit;

use crate::config::NodeConfigError;
use crate::source::SourceError;

/// Error that ends a node.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] NodeConfigError),
    /// The link cannot be set up.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A recorded source that is read by rounds does not open.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// An address of the node's own is in use.
    #[error("cannot listen on {listen}: {cause}; choose another {section}.listen")]
    Listen {
        /// "metrics" or "page".
        section: &'static str,
        /// The configured address.
        listen: SocketAddr,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The system gives no random numbers.
    #[error("cannot read /dev/urandom: {cause}; noise that others could compute would protect nothing")]
    Random {
        /// The system's error.
        cause: std::io::Error,
    },
    /// The state folder cannot be used at all; a full disk is no such error.
    #[error("cannot write to node.state_folder: {cause}; it must be a writable folder")]
    State {
        /// The system's error.
        cause: std::io::Error,
    },
}

impl NodeError {
    /// The exit code of the program.
    pub fn exit(&self) -> Exit {
        match self {
            NodeError::Config(_) | NodeError::State { .. } | NodeError::Listen { .. } => Exit::Config,
            NodeError::Link(error) => error.exit(),
            NodeError::Source(_) => Exit::Data,
            NodeError::Random { .. } => Exit::Software,
        }
    }
}
