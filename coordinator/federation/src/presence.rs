//! Nodes whose presence is unconfirmed since the link was restored.

use std::collections::BTreeMap;

use evenhand_protocol::identity::NodeId;

/// Rounds that an unconfirmed node may miss in silence before it counts as offline.
const SILENT_ROUNDS_MAX: u32 = 3;

/// Rounds missed by nodes that have been silent since the link was restored; they may have left unnoticed.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Unconfirmed {
    silent_rounds: BTreeMap<NodeId, u32>,
}

impl Unconfirmed {
    /// Doubts exactly these nodes.
    pub(crate) fn reset<'a>(&mut self, nodes: impl Iterator<Item = &'a NodeId>) {
        self.silent_rounds = nodes.map(|node| (node.clone(), 0)).collect();
    }

    /// Doubts a node of which only a retained message speaks.
    pub(crate) fn mark(&mut self, node: NodeId) {
        self.silent_rounds.entry(node).or_insert(0);
    }

    /// Notes a message of a node; returns whether it was unconfirmed.
    pub(crate) fn confirm(&mut self, node: &NodeId) -> bool {
        self.silent_rounds.remove(node).is_some()
    }

    /// Counts a missed round; returns whether the node still counts as online.
    pub(crate) fn miss(&mut self, node: &NodeId) -> bool {
        self.silent_rounds.get_mut(node).is_none_or(|missed| {
            *missed += 1;
            *missed < SILENT_ROUNDS_MAX
        })
    }
}
