//! What can stop a coordinator.

use evenhand_link::LinkError;
use evenhand_protocol::exit::Exit;

use super::keeper::KeepError;
use evenhand_federation::CommandRejection;

/// Why a command came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unheeded {
    /// The federation cannot do it.
    #[error(transparent)]
    CommandRejection(#[from] CommandRejection),
    /// Nobody hears it any more.
    #[error("the coordinator is ending")]
    Ending,
}

/// Why a coordinator cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// The broker cannot be had.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The link ended by itself.
    #[error("the link to the broker was closed; start the coordinator again")]
    LinkClosed,
    /// The embedded broker cannot listen.
    #[error("cannot listen on {address}: {source}; choose another broker.listen")]
    Listen {
        /// Where.
        address: std::net::SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// The state cannot be made durable, so nothing may be announced.
    #[error("cannot save the state: {0}; free space or repair the disk, then start the coordinator again")]
    Keeper(#[source] KeepError),
    /// The federation's thread panicked.
    #[error("a defect in the coordinator: {0}")]
    Defect(String),
}

impl ShellError {
    /// What the program tells the shell.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Link(error) => error.exit(),
            Self::LinkClosed => Exit::Broker,
            Self::Listen { .. } => Exit::Config,
            Self::Keeper(_) => Exit::Data,
            Self::Defect(_) => Exit::Software,
        }
    }
}
