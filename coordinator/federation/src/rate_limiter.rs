//! Limits on the messages of each node between two rounds, and the refusals since the last record.

use std::collections::BTreeMap;

use evenhand_protocol::identity::NodeId;
use evenhand_protocol::message::Refusal;
use serde::{Deserialize, Serialize};

use crate::effect::{EffectBuffer, OrderPayload};
use crate::index::NodeIndex;

/// Refusals of one kind that unknown senders are sent between two rounds: an answer to everybody would
/// make a nuisance a flood.
const UNKNOWN_ANSWERED_MAX: u32 = 1000;

/// Names counted between two rounds: where anybody may enrol, names cost nothing.
const NAMES_MAX: usize = 100_000;

/// Message counts and refusals since the last round.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct RateLimiter {
    /// Refusals since the last record, by sender (none for unknown ones).
    refusals: BTreeMap<Option<NodeIndex>, BTreeMap<Refusal, u32>>,
    /// Messages of each node since the round was opened, or the last one closed.
    #[serde(skip)]
    message_counts: BTreeMap<NodeId, u32>,
}

impl RateLimiter {
    /// Counts a message; returns whether its sender is within `messages_max`.
    pub(crate) fn within_rate_limit(&mut self, node: &NodeId, messages_max: u32) -> bool {
        if self.message_counts.len() >= NAMES_MAX && !self.message_counts.contains_key(node) {
            return false;
        }
        let count = self.message_counts.entry(node.clone()).or_default();
        *count = count.saturating_add(1);
        *count <= messages_max
    }

    /// Counts from zero again.
    pub(crate) fn reset_counts(&mut self) {
        self.message_counts.clear();
    }

    /// Counts a refusal; a member receives the first one of a round, unknown senders up to a limit.
    pub(crate) fn refuse(
        &mut self,
        node: NodeId,
        index: Option<NodeIndex>,
        round: u32,
        refusal: Refusal,
        out: &mut EffectBuffer,
    ) {
        let count = self.refusals.entry(index).or_default().entry(refusal).or_default();
        *count = count.saturating_add(1);
        if *count == 1 || (index.is_none() && *count <= UNKNOWN_ANSWERED_MAX) {
            out.publish(node, OrderPayload::Refused { round, refusal });
        }
    }

    /// The refusals of one sender since the last record; `None` for all unknown ones.
    pub(crate) fn refusals_of(&self, node: Option<NodeIndex>) -> BTreeMap<Refusal, u32> {
        self.refusals.get(&node).cloned().unwrap_or_default()
    }

    /// Begins again after a record.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    /// The same as it is saved: without the counts, which belong to the connection.
    pub(crate) fn saved(&self) -> Self {
        Self { refusals: self.refusals.clone(), message_counts: BTreeMap::new() }
    }
}
