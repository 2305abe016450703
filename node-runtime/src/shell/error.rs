//! Why a node cannot run.

use std::path::PathBuf;

use evenhand_link::LinkError;
use evenhand_protocol::exit::Exit;

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
    /// The state folder cannot be written at the start, so that the session number could not grow.
    #[error("cannot write {}: {cause}; node.state_folder must be writable", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
}

impl NodeError {
    /// What the program tells the shell when it ends because of it.
    pub fn exit(&self) -> Exit {
        match self {
            NodeError::Config(_) | NodeError::State { .. } => Exit::Config,
            NodeError::Link(error) => error.exit(),
            NodeError::Source(_) => Exit::Data,
        }
    }
}
