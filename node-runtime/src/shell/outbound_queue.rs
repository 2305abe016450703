//! Outbound queue: messages to the coordinator that wait to be published.

use std::collections::VecDeque;
use std::time::Instant;

use evenhand_link::{MessageQueue, OutboundMessage};
use evenhand_program::log_rate::LogRate;

/// Messages that wait for a slow broker at most; then the oldest, which is out of date, is dropped.
const MESSAGES_MAX: usize = 8;

/// Messages in the order in which they were queued.
#[derive(Debug, Default)]
pub(super) struct NodeOutboundQueue {
    messages: VecDeque<OutboundMessage>,
    dropped: LogRate,
}

impl NodeOutboundQueue {
    pub(super) fn push(&mut self, message: OutboundMessage) {
        if self.messages.len() == MESSAGES_MAX {
            if let Some(left_out) = self.dropped.permit(Instant::now()) {
                tracing::warn!(left_out, "broker too slow; dropping the oldest queued message");
            }
            self.messages.pop_front();
        }
        self.messages.push_back(message);
    }

    /// Empties the queue after a connect: the node then publishes again all that is still valid.
    pub(super) fn clear(&mut self) {
        self.messages.clear();
    }
}

impl MessageQueue for NodeOutboundQueue {
    fn next(&mut self) -> Option<OutboundMessage> {
        self.messages.pop_front()
    }
}
