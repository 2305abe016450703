//! Positions of nodes, as types: in the roster and in a draw.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A node's position in the roster, assigned when it is enrolled and never changed.
///
/// Rows of contributions, sampling probabilities and the round log are ordered by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeIndex(pub usize);

/// An asked node's position in one round's draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DrawSlot(pub usize);

impl NodeIndex {
    /// The position as a plain number.
    pub fn get(self) -> usize {
        self.0
    }

    /// The first `count` positions, in order.
    pub fn first(count: usize) -> impl DoubleEndedIterator<Item = Self> + Clone {
        (0..count).map(Self)
    }
}

impl fmt::Display for NodeIndex {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}
