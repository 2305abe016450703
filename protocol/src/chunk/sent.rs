//! Sent transfers, for receivers that request chunks again.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;

use super::{Transfer, TransferId};
use crate::message::MissingChunks;

/// The latest transfers of more than one chunk, and the topics each was sent on.
///
/// A request is answered only on a topic on which the transfer was sent before: knowing the id of a
/// transfer gives no node a model that was not sent to it.
#[derive(Debug)]
pub struct SentTransfers {
    bytes_max: usize,
    bytes: usize,
    /// Latest last.
    transfers: VecDeque<SentTransfer>,
}

#[derive(Debug)]
struct SentTransfer {
    transfer: Arc<Transfer>,
    topics: BTreeSet<String>,
}

impl SentTransfers {
    /// No transfers yet; the latest will be stored, `bytes_max` bytes at most.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes: 0, transfers: VecDeque::new() }
    }

    /// Stores a transfer that is sent on `topic`. The same message on many topics is stored once.
    pub fn insert(&mut self, topic: &str, transfer: &Arc<Transfer>) {
        if transfer.count() == 1 || transfer.message_bytes() > self.bytes_max {
            return;
        }
        let known = self.position(transfer.id()).and_then(|position| self.transfers.remove(position));
        let mut sent = known.unwrap_or_else(|| {
            self.bytes += transfer.message_bytes();
            SentTransfer { transfer: Arc::clone(transfer), topics: BTreeSet::new() }
        });
        sent.topics.insert(topic.to_owned());
        self.transfers.push_back(sent);
        while self.bytes > self.bytes_max {
            let oldest = self.transfers.pop_front().map_or(0, |sent| sent.transfer.message_bytes());
            self.bytes -= oldest;
        }
    }

    /// The transfer that `missing` belongs to, if it was sent on `topic` and is still stored.
    pub fn find(&self, topic: &str, missing: &MissingChunks) -> Option<Arc<Transfer>> {
        let sent = &self.transfers[self.position(missing.transfer)?];
        sent.topics.contains(topic).then(|| Arc::clone(&sent.transfer))
    }

    fn position(&self, id: TransferId) -> Option<usize> {
        self.transfers.iter().position(|sent| sent.transfer.id() == id)
    }
}
