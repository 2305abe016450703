//! What a node still has to say to its coordinator.

use std::collections::VecDeque;

use evenhand_link::{MessageQueue, OutboundMessage};

/// Letters of one connection that wait for a slow broker; then the oldest, which is out of date, is dropped.
const WAITING: usize = 8;

/// In the order in which they were written.
#[derive(Debug, Default)]
pub(super) struct Letters(VecDeque<OutboundMessage>);

impl Letters {
    pub(super) fn push(&mut self, letter: OutboundMessage) {
        if self.0.len() == WAITING {
            tracing::warn!("the broker is too slow; the oldest message that waits is dropped");
            self.0.pop_front();
        }
        self.0.push_back(letter);
    }

    /// A connection was made: the node says everything anew that still matters.
    pub(super) fn begin_anew(&mut self) {
        self.0.clear();
    }
}

impl MessageQueue for Letters {
    fn next(&mut self) -> Option<OutboundMessage> {
        self.0.pop_front()
    }
}
