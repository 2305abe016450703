//! One enrolled node.

use evenhand_protocol::identity::{Digest, NodeId};
use evenhand_protocol::message::{Life, Status};
use serde::{Deserialize, Serialize};

use crate::standing::Standing;

/// One enrolled node. Nothing of it is ever dropped: it may leave and come back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Member {
    pub(crate) id: NodeId,
    pub(crate) session: NodeSession,
    pub(crate) standing: Standing,
    /// Digest of the weights that it is known to hold.
    pub(crate) holds: Option<Digest>,
    /// True if its contributions count in the current exploration: from the first round it was asked in.
    pub(crate) measured: bool,
    /// The round in or after which the operator removed it.
    pub(crate) removed: Option<u32>,
    /// True if it must come online again, and be admitted, before its messages count; decided at every start.
    #[serde(skip)]
    pub(crate) suspended: bool,
    pub(crate) drawn: u32,
    pub(crate) last_drawn: Option<u32>,
    pub(crate) last_counted: Option<u32>,
}

impl Member {
    pub(crate) fn enrolled(id: NodeId, pending: Pending, standing: Standing) -> Self {
        Self {
            id,
            session: pending.session,
            standing,
            holds: pending.holds,
            measured: false,
            removed: None,
            suspended: false,
            drawn: 0,
            last_drawn: None,
            last_counted: None,
        }
    }

    /// Its name.
    pub fn id(&self) -> &NodeId {
        &self.id
    }

    /// True if it is online.
    pub fn is_online(&self) -> bool {
        self.session.online
    }

    /// True if the operator removed it.
    pub fn is_removed(&self) -> bool {
        self.removed.is_some()
    }

    /// ψᵢ, with the measurements behind it.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// Times it was drawn.
    pub fn drawn(&self) -> u32 {
        self.drawn
    }

    /// The round it was last drawn in.
    pub fn last_drawn(&self) -> Option<u32> {
        self.last_drawn
    }

    /// Rounds from its last draw to `round`.
    pub fn staleness(&self, round: u32) -> u32 {
        round.saturating_sub(self.last_drawn.unwrap_or(0))
    }

    /// Ignores it until it comes online again and is admitted.
    pub(crate) fn suspend(&mut self) {
        self.suspended = true;
        self.session.online = false;
    }

    /// True if it can take part in the next round.
    pub(crate) fn is_present(&self) -> bool {
        self.session.online && !self.is_removed()
    }
}

/// A node's newest known session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeSession {
    pub(crate) number: u64,
    pub(crate) online: bool,
}

impl NodeSession {
    /// Applies a status unless it is the will of an older session, which the next birth can overtake. A birth counts
    /// whatever its number, which comes from a clock that may have been set back: births do not overtake each other.
    /// Returns whether it was applied.
    pub(crate) fn apply(&mut self, status: &Status) -> bool {
        let online = matches!(status.life, Life::Born(_));
        let newer = online || status.session >= self.number;
        if newer {
            *self = Self { number: status.session, online };
        }
        newer
    }
}

/// A node whose join request was accepted; it is enrolled with the next round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pending {
    pub(crate) session: NodeSession,
    pub(crate) holds: Option<Digest>,
}
