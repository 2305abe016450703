//! Inputs of a federation: messages, commands, time.

use evenhand_protocol::identity::NodeId;
use evenhand_protocol::message::{Answer, Status};
pub use evenhand_protocol::tick::Tick;
use serde::{Deserialize, Serialize};

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A node came online or went offline.
    Status {
        /// The sender.
        node: NodeId,
        /// Its session, online or offline.
        status: Status,
    },
    /// The same as a retained message: the node may have left since, unnoticed.
    RetainedStatus {
        /// The sender.
        node: NodeId,
        /// Its session, online or offline.
        status: Status,
    },
    /// A node answered.
    Answer {
        /// The sender.
        node: NodeId,
        /// Its message.
        answer: Answer,
    },
    /// Bytes on a node's topic that do not decode.
    Malformed {
        /// The name on the topic.
        node: NodeId,
    },
    /// A command of the operator.
    Command(Command),
    /// The link to the broker is up (again), or the coordinator was restored: what is under way is
    /// announced once more, and everybody gets the full deadline.
    LinkRestored,
    /// Time has passed; due at [`alarm`](crate::Federation::alarm), harmless at any time.
    Tick,
}

/// A command of the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Do not wait for more nodes: begin with those that are online.
    Begin,
    /// Open no further rounds; the running one ends as usual.
    Pause,
    /// Go on after a pause.
    Resume,
    /// Measure all contributions again, from the next round on.
    Explore,
    /// Remove a node for good. Its record stays.
    Remove(NodeId),
    /// End with the latest model; the running round is abandoned.
    Finish,
}
