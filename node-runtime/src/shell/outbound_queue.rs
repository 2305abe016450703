//! Outbound queue: messages to the coordinator that wait to be published.

use std::collections::VecDeque;

use evenhand_link::{MessageQueue, OutboundMessage};

/// Messages that wait for a slow broker at most; then the oldest, which is out of date, is dropped.
const MESSAGES_MAX: usize = 8;

/// Messages in the order in which they were queued.
#[derive(Debug, Default)]
pub(super) struct NodeOutboundQueue(VecDeque<OutboundMessage>);

impl NodeOutboundQueue {
    pub(super) fn push(&mut self, message: OutboundMessage) {
        if self.0.len() == MESSAGES_MAX {
            tracing::warn!("broker too slow; dropping the oldest queued message");
            self.0.pop_front();
        }
        self.0.push_back(message);
    }

    /// Empties the queue after a connect: the node then publishes again all that is still valid.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl MessageQueue for NodeOutboundQueue {
    fn next(&mut self) -> Option<OutboundMessage> {
        self.0.pop_front()
    }
}
