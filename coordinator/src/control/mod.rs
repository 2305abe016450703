//! How an operator steers a coordinator that runs: by a socket in its state folder.
//!
//! Whoever may write to the folder may command; no token, no network. One connection is one request and its
//! reply, a line of JSON each.

mod client;
mod server;
mod status;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use self::client::{ControlError, ask, runs};
pub use self::server::Server;
pub use self::status::{NodeStatus, Status};

use evenhand_federation::Command;

/// Where the socket of a state folder is.
pub fn socket(folder: &Path) -> PathBuf {
    folder.join("control.sock")
}

/// What can be asked of a running coordinator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// How the federation stands.
    Status,
    /// The operator wants something.
    Command(Command),
    /// Copy the state, as it is now, to this folder.
    Backup(PathBuf),
}

/// What it answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// How the federation stands, after what was asked for was done.
    Status(Box<Status>),
    /// It was not done, and why.
    Refused(String),
}
