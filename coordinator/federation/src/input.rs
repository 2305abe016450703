//! What can happen to a federation.

use evenhand_protocol::identity::NodeId;
use evenhand_protocol::message::{Answer, Status};
pub use evenhand_protocol::tick::Tick;
use serde::{Deserialize, Serialize};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A node was born or died.
    Status {
        /// Who.
        node: NodeId,
        /// Which session, and whether it lives.
        status: Status,
    },
    /// The same as the broker kept it from before: the node may have left since, unheard.
    RetainedStatus {
        /// Who.
        node: NodeId,
        /// Which session, and whether it lived.
        status: Status,
    },
    /// A node answered.
    Answer {
        /// Who.
        node: NodeId,
        /// What it said.
        answer: Answer,
    },
    /// Bytes on a node's topic that do not decode.
    Malformed {
        /// Under whose name they came.
        node: NodeId,
    },
    /// The operator wants something.
    Command(Command),
    /// The link to the broker stands (again), or the coordinator was restored: what is under way is
    /// announced once more, and everybody gets the full deadline.
    LinkRestored,
    /// Time has passed; due at [`alarm`](super::Federation::alarm), harmless at any time.
    Tick,
}

/// What an operator can ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Do not wait for more nodes: begin with those that are there.
    Begin,
    /// Open no further rounds; the running one ends as usual.
    Pause,
    /// Go on after a pause.
    Resume,
    /// Measure all contributions anew, from the next round on.
    Explore,
    /// Shut a node out for good. Its record stays.
    Remove(NodeId),
    /// End with what was reached; the running round is given up.
    Finish,
}
