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
    #[error(
        "the system gives no random numbers: {cause}; noise that others could compute would protect nothing"
    )]
    Random {
        /// The system's error.
        cause: std::io::Error,
    },
    /// Beyond this machine a node must know its coordinator.
    #[error(
        "node.coordinator_key is missing: beyond this machine anybody could pretend to be the coordinator; join by an \
         invitation (evenhand-node join), or set the key that evenhand-coordinator key prints"
    )]
    CoordinatorUnknown,
    /// The file of the private key holds something else.
    #[error(
        "the file {0} in node.state_folder holds no key; restore it, or remove it and join by a new invitation"
    )]
    Key(&'static str),
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
            NodeError::Config(_)
            | NodeError::CoordinatorUnknown
            | NodeError::Key(_)
            | NodeError::State { .. }
            | NodeError::Listen { .. } => Exit::Config,
            NodeError::Link(error) => error.exit(),
            NodeError::Source(_) => Exit::Data,
            NodeError::Random { .. } => Exit::Software,
        }
    }
}
