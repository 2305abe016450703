//! Digests of updates, kept in place of the updates.

use evenhand_federation::{NodeIndex, ReceivedRound};
use evenhand_protocol::identity::Digest;
use serde::{Deserialize, Serialize};

/// SHA-256 of each message of a round that counted, in postcard. A node that has its update can prove by it what it sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedDigests {
    /// Of the updates, by index.
    pub updates: Vec<(NodeIndex, Digest)>,
    /// Of the reference gradients, by index.
    pub measurements: Vec<(NodeIndex, Digest)>,
}

impl ReceivedDigests {
    /// The digests of the messages of a round.
    pub fn of(received: &ReceivedRound) -> Self {
        fn digests<T: Serialize>(messages: &[(NodeIndex, T)]) -> Vec<(NodeIndex, Digest)> {
            let digest =
                |message| Digest::of(&postcard::to_allocvec(message).expect("plain data always encodes"));
            messages.iter().map(|(node, message)| (*node, digest(message))).collect()
        }
        Self { updates: digests(&received.updates), measurements: digests(&received.measurements) }
    }
}
