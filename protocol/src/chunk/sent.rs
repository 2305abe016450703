//! What was sent, for those who ask for chunks again.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;

use super::{Transfer, TransferId};
use crate::message::Missing;

/// The latest transfers of more than one chunk, and on which topics each was sent.
///
/// A request is served only on a topic on which the transfer was sent before: knowing the name of a
/// transfer gives nobody a model that was not meant for him.
#[derive(Debug)]
pub struct Sent {
    bytes_max: usize,
    bytes: usize,
    kept: VecDeque<Kept>,
}

#[derive(Debug)]
struct Kept {
    transfer: Arc<Transfer>,
    topics: BTreeSet<String>,
}

impl Sent {
    /// Keeps the latest transfers, `bytes_max` bytes at most.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes: 0, kept: VecDeque::new() }
    }

    /// Notes that `transfer` goes out on `topic`. The same message on many topics is kept once.
    pub fn note(&mut self, topic: &str, transfer: &Arc<Transfer>) {
        if transfer.count() == 1 || transfer.message_bytes() > self.bytes_max {
            return;
        }
        let mut kept = match self.position(transfer.id()).and_then(|position| self.kept.remove(position)) {
            Some(kept) => kept,
            None => {
                self.bytes += transfer.message_bytes();
                Kept { transfer: Arc::clone(transfer), topics: BTreeSet::new() }
            }
        };
        kept.topics.insert(topic.to_owned());
        self.kept.push_back(kept);
        while self.bytes > self.bytes_max {
            let oldest = self.kept.pop_front().map_or(0, |kept| kept.transfer.message_bytes());
            self.bytes -= oldest;
        }
    }

    /// The transfer that `missing` asks for, if it was sent on `topic` and is still kept.
    pub fn find(&self, topic: &str, missing: &Missing) -> Option<Arc<Transfer>> {
        let kept = &self.kept[self.position(missing.transfer)?];
        kept.topics.contains(topic).then(|| Arc::clone(&kept.transfer))
    }

    fn position(&self, id: TransferId) -> Option<usize> {
        self.kept.iter().position(|kept| kept.transfer.id() == id)
    }
}
