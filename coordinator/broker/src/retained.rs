//! The last message of a topic, kept for those who come later.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::hub::{Letter, OVERHEAD_BYTES};
use super::topics::matches;

/// What is kept, within bounds: it stays until somebody replaces it, so nobody may fill the memory with it.
#[derive(Debug)]
pub(super) struct Retained {
    letters: BTreeMap<String, Arc<Letter>>,
    bytes: usize,
    /// Of one message.
    letter_bytes_max: usize,
    /// Of all together.
    bytes_max: usize,
    warned: bool,
}

impl Retained {
    pub(super) fn new(letter_bytes_max: usize, bytes_max: usize) -> Self {
        Self { letters: BTreeMap::new(), bytes: 0, letter_bytes_max, bytes_max, warned: false }
    }

    pub(super) fn len(&self) -> usize {
        self.letters.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps the letter instead of the one before it, if there is room; an empty one only removes that.
    pub(super) fn keep(&mut self, letter: &Arc<Letter>) {
        if let Some(before) = self.letters.remove(&letter.topic) {
            self.bytes -= cost(&before);
        }
        if letter.payload.is_empty() {
            return;
        }
        let bytes = cost(letter);
        if bytes <= self.letter_bytes_max && self.bytes + bytes <= self.bytes_max {
            self.bytes += bytes;
            self.letters.insert(letter.topic.clone(), Arc::clone(letter));
        } else if !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(
                topic = letter.topic,
                bytes,
                kept_bytes = self.bytes,
                "no room to retain messages"
            );
        }
    }

    /// What is kept on the topics that a filter means.
    pub(super) fn wanted_by(&self, filter: &str) -> Vec<Arc<Letter>> {
        // A filter without wildcards is a topic: most are, and need no search.
        if !filter.contains(['+', '#']) {
            return self.letters.get(filter).into_iter().map(Arc::clone).collect();
        }
        let wanted = self.letters.iter().filter(|(topic, _)| matches(topic, filter));
        wanted.map(|(_, letter)| Arc::clone(letter)).collect()
    }
}

/// The topic stands in the letter and beside it.
fn cost(letter: &Letter) -> usize {
    letter.payload.len() + 2 * letter.topic.len() + OVERHEAD_BYTES
}
