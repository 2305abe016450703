//! The retained message of each topic.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::message::ApplicationMessage;
use crate::topic_match::matches;

/// Retained messages by topic. Both bounds are needed: a message stays until it is replaced, so no client may fill the
/// memory with them.
#[derive(Debug)]
pub(crate) struct RetainedMessages {
    messages: BTreeMap<String, Arc<ApplicationMessage>>,
    bytes: usize,
    message_bytes_max: usize,
    bytes_max: usize,
    warned: bool,
}

impl RetainedMessages {
    pub(crate) fn new(message_bytes_max: usize, bytes_max: usize) -> Self {
        Self { messages: BTreeMap::new(), bytes: 0, message_bytes_max, bytes_max, warned: false }
    }

    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Replaces the topic's message, if there is room; an empty payload only removes it.
    pub(crate) fn set(&mut self, message: &Arc<ApplicationMessage>) {
        if let Some(previous) = self.messages.remove(&message.topic) {
            self.bytes -= previous.retained_bytes();
        }
        if message.payload.is_empty() {
            return;
        }
        let bytes = message.retained_bytes();
        if bytes <= self.message_bytes_max && self.bytes + bytes <= self.bytes_max {
            self.bytes += bytes;
            self.messages.insert(message.topic.clone(), Arc::clone(message));
        } else if !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(
                topic = message.topic,
                bytes,
                retained_bytes = self.bytes,
                "embedded broker: retained messages at their limit"
            );
        }
    }

    /// The retained messages whose topics match a filter.
    pub(crate) fn matching(&self, filter: &str) -> Vec<Arc<ApplicationMessage>> {
        // A filter without wildcards is a topic: most are, and need no search.
        if !filter.contains(['+', '#']) {
            return self.messages.get(filter).into_iter().map(Arc::clone).collect();
        }
        let matching = self.messages.iter().filter(|(topic, _)| matches(topic, filter));
        matching.map(|(_, message)| Arc::clone(message)).collect()
    }
}
