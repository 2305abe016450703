//! The operator's control socket, in the state folder.
//!
//! Write permission to the folder is permission to command; no token, no network. One connection is one request and its
//! reply, a line of JSON each.

mod client;
mod server;
mod status;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use self::client::{ControlError, is_running, send};
pub use self::server::ControlServer;
pub use self::status::{FederationStatus, NodeStatus};

use crate::joining::Invitee;
use evenhand_federation::Command;
use evenhand_protocol::identity::NodeId;

/// The control socket of a state folder.
pub fn socket_path(folder: &Path) -> PathBuf {
    folder.join("control.sock")
}

/// A request to a running coordinator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlRequest {
    /// The status of the federation.
    Status,
    /// An operator's command.
    Command(Command),
    /// Invitations for these names; `again` replaces devices.
    Invite {
        /// The names, with digests of their codes.
        invitees: Vec<Invitee>,
        /// True for names that are known.
        again: bool,
    },
    /// A node is sent nothing and not heard until it is invited again.
    Revoke(NodeId),
    /// Other keys for the coordinator; the present one is accepted for so many days.
    RotateKey {
        /// The days.
        overlap_days: u32,
    },
    /// A copy of the current state to this folder.
    Backup(PathBuf),
}

/// The reply to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlReply {
    /// The request was carried out; the status after it.
    Status(Box<FederationStatus>),
    /// The request was refused, for this reason.
    Refused(String),
}
