//! Errors of a running coordinator.

use evenhand_link::LinkError;
use evenhand_program::exit::Exit;

use super::persistence::PersistenceError;
use evenhand_federation::CommandRejection;

/// The cause of a command's failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The federation cannot carry it out.
    #[error(transparent)]
    Rejected(#[from] CommandRejection),
    /// Names or keys cannot be changed this way.
    #[error("{0}")]
    Gate(String),
    /// The coordinator does not take commands any more.
    #[error("the coordinator is shutting down")]
    ShuttingDown,
}

/// The cause of a coordinator's failure.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// The broker cannot be used.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The link ended by itself.
    #[error("the link to the broker was closed; start the coordinator again")]
    LinkClosed,
    /// The embedded broker cannot listen.
    #[error("cannot listen on {address}: {source}; choose another broker.listen")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// The state cannot be made durable, so nothing may be announced.
    #[error("cannot save the state: {0}; free space or repair the disk, then start the coordinator again")]
    Persistence(#[source] PersistenceError),
    /// There are no random bytes for keys.
    #[error("the system gives no random bytes: {0}")]
    Entropy(#[source] std::io::Error),
    /// The federation's thread panicked.
    #[error("a defect in the coordinator: {0}")]
    Defect(String),
}

impl ShellError {
    /// The exit code of a program that fails with it.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Link(error) => error.exit(),
            Self::LinkClosed => Exit::Broker,
            Self::Listen { .. } => Exit::Config,
            Self::Persistence(_) => Exit::Data,
            Self::Entropy(_) | Self::Defect(_) => Exit::Software,
        }
    }
}
