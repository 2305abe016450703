//! Reassembly of chunks into messages: chunks may be late, repeated, out of order, lost or hostile.

use alloc::borrow::{Cow, ToOwned};
use alloc::collections::VecDeque;
use alloc::collections::btree_map::{BTreeMap, Entry};
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::{ChunkError, Header, TransferId};
use crate::limits::MessageLimits;
use crate::message::MissingChunks;

/// Time without progress after which the missing chunks of a transfer are requested, unless configured otherwise.
pub const RESEND_AFTER_MS: u64 = 10_000;

/// Requests for missing chunks, each after twice the wait, before a transfer is dropped.
const REQUESTS_MAX: u32 = 4;

/// Memory of a stored chunk, transfer or sender beside its bytes, roughly: many tiny ones must not be free.
const OVERHEAD_BYTES: usize = 128;

/// Incomplete messages of all senders.
///
/// Time is any growing number of milliseconds that the caller passes. A sender's newest transfers
/// supersede its oldest; if all senders together take too much memory, those of the sender that announced most bytes are
/// dropped, so that a sender cannot displace others that need less.
#[derive(Debug)]
pub struct Assembler {
    limits: MessageLimits,
    resend_after_ms: u64,
    senders: BTreeMap<String, SenderState>,
    bytes: usize,
    /// Times a sender without incomplete transfers began one.
    starts: u64,
}

#[derive(Debug, Default)]
struct SenderState {
    /// Oldest first.
    incomplete: VecDeque<IncompleteTransfer>,
    /// The transfer that was completed last: its late chunks are repetitions, not the start of another.
    completed: Option<TransferId>,
    touched_ms: u64,
    /// Position of its oldest incomplete transfer among the starts of all senders.
    start: u64,
}

#[derive(Debug)]
struct IncompleteTransfer {
    header: Header,
    chunks: BTreeMap<u16, Vec<u8>>,
    cost: usize,
    touched_ms: u64,
    requests: u32,
}

impl IncompleteTransfer {
    fn new(header: Header, now_ms: u64) -> Self {
        Self { header, chunks: BTreeMap::new(), cost: OVERHEAD_BYTES, touched_ms: now_ms, requests: 0 }
    }

    /// Stores one more chunk; a repeated one changes nothing, not even the clock.
    fn add(&mut self, index: u16, part: &[u8], now_ms: u64) {
        if let Entry::Vacant(place) = self.chunks.entry(index) {
            place.insert(part.to_vec());
            self.cost += OVERHEAD_BYTES + part.len();
            (self.touched_ms, self.requests) = (now_ms, 0);
        }
    }

    fn missing(&self) -> MissingChunks {
        let chunks = (0..self.header.count).filter(|index| !self.chunks.contains_key(index)).collect();
        MissingChunks { transfer: self.header.transfer, chunks }
    }
}

impl Assembler {
    /// An assembler that requests missing chunks after `resend_after_ms` without progress.
    pub fn new(limits: MessageLimits, resend_after_ms: u64) -> Self {
        Self {
            limits,
            resend_after_ms: resend_after_ms.max(1),
            senders: BTreeMap::new(),
            bytes: 0,
            starts: 0,
        }
    }

    /// Adds one packet of `sender`; returns the message if this completes one.
    pub fn accept<'p>(
        &mut self,
        sender: &str,
        packet: &'p [u8],
        now_ms: u64,
    ) -> Result<Option<Cow<'p, [u8]>>, ChunkError> {
        let (header, part) = Header::read(packet)?;
        self.within_limits(&header)?;
        if header.count == 1 {
            return verified(header.transfer, Cow::Borrowed(part)).map(Some);
        }
        let from = self.senders.entry(sender.to_owned()).or_insert_with(|| {
            self.bytes += OVERHEAD_BYTES + sender.len();
            SenderState::default()
        });
        from.touched_ms = now_ms;
        if from.completed == Some(header.transfer) {
            // A repeated tail is noise; a repetition from the first chunk on was sent deliberately.
            if header.index != 0 {
                return Ok(None);
            }
            from.completed = None;
        }

        if from.incomplete.is_empty() {
            self.starts += 1;
            from.start = self.starts;
        }
        let before = from.cost();
        let complete = from.add_chunk(header, part, now_ms, self.limits.incomplete_transfers_max);
        self.bytes = self.bytes + from.cost() - before;
        self.drop_largest(now_ms);
        complete.map(|message| verified(header.transfer, Cow::Owned(message))).transpose()
    }

    /// The missing chunks of the incomplete transfers of `sender`, oldest first.
    pub fn missing(&self, sender: &str) -> Vec<MissingChunks> {
        self.senders
            .get(sender)
            .into_iter()
            .flat_map(|from| &from.incomplete)
            .map(IncompleteTransfer::missing)
            .collect()
    }

    /// True if any transfer is incomplete.
    pub fn has_incomplete(&self) -> bool {
        self.senders.values().any(|from| !from.incomplete.is_empty())
    }

    /// The requests that are due at `now_ms`: the sender and the missing chunks of each stalled transfer. To be called
    /// periodically.
    ///
    /// Each is requested again after twice the wait; after four requests in vain it is dropped.
    pub fn overdue(&mut self, now_ms: u64) -> Vec<(String, MissingChunks)> {
        let mut requests = Vec::new();
        for (name, from) in &mut self.senders {
            let before = from.cost();
            let resend_after_ms = self.resend_after_ms;
            from.incomplete.retain_mut(|transfer| {
                let wait_ms = resend_after_ms.saturating_mul(1 << transfer.requests);
                if now_ms.saturating_sub(transfer.touched_ms) < wait_ms {
                    return true;
                }
                if transfer.requests == REQUESTS_MAX {
                    return false;
                }
                transfer.requests += 1;
                transfer.touched_ms = now_ms;
                requests.push((name.clone(), transfer.missing()));
                true
            });
            self.bytes = self.bytes + from.cost() - before;
        }
        requests
    }

    fn within_limits(&self, header: &Header) -> Result<(), ChunkError> {
        let (bytes, chunks) = (header.total as usize, usize::from(header.count));
        let (bytes_max, chunks_max) = (self.limits.message_bytes_max, usize::from(self.limits.chunks_max));
        if bytes > bytes_max {
            return Err(ChunkError::TooLong { bytes, bytes_max });
        }
        if chunks > chunks_max {
            return Err(ChunkError::TooMany { chunks, chunks_max });
        }
        Ok(())
    }

    /// Frees memory by dropping the sender that announced most bytes. Among equals, stalled senders are dropped first,
    /// longest stalled first; then those that started last: if those ahead were dropped, or took turns, none would finish.
    fn drop_largest(&mut self, now_ms: u64) {
        let stalled = |from: &SenderState| now_ms.saturating_sub(from.touched_ms) >= self.resend_after_ms;
        while self.bytes > self.limits.incomplete_bytes_max {
            let priority = |(_, from): &(&String, &SenderState)| {
                let stalled_since = stalled(from).then_some(Reverse(from.touched_ms));
                (from.announced(), stalled_since, from.start)
            };
            let Some(name) = self.senders.iter().max_by_key(priority).map(|(name, _)| name.clone()) else {
                return;
            };
            let cost = self.senders.remove(&name).map_or(0, |from| from.cost());
            self.bytes -= OVERHEAD_BYTES + name.len() + cost;
        }
    }
}

impl SenderState {
    /// Bytes that the headers of its incomplete transfers announce; never less than what they hold.
    fn announced(&self) -> usize {
        self.incomplete.iter().map(|transfer| transfer.header.total as usize).sum()
    }

    /// Memory of its incomplete transfers.
    fn cost(&self) -> usize {
        self.incomplete.iter().map(|transfer| transfer.cost).sum()
    }

    /// Adds one chunk; returns the message if it was the last.
    fn add_chunk(&mut self, header: Header, part: &[u8], now_ms: u64, open_max: usize) -> Option<Vec<u8>> {
        // The same message cut differently: its sender changed its payload limit and started over.
        self.incomplete.retain(|transfer| {
            transfer.header.transfer != header.transfer
                || (transfer.header.count, transfer.header.total) == (header.count, header.total)
        });
        let position =
            match self.incomplete.iter().position(|transfer| transfer.header.transfer == header.transfer) {
                Some(position) => position,
                None => {
                    while self.incomplete.len() >= open_max.max(1) {
                        self.incomplete.pop_front();
                    }
                    self.incomplete.push_back(IncompleteTransfer::new(header, now_ms));
                    self.incomplete.len() - 1
                }
            };
        let transfer = &mut self.incomplete[position];
        transfer.add(header.index, part, now_ms);
        if transfer.chunks.len() < usize::from(header.count) {
            return None;
        }
        let complete = self.incomplete.remove(position)?;
        self.completed = Some(header.transfer);
        let mut message = Vec::with_capacity(header.total as usize);
        complete.chunks.values().for_each(|chunk| message.extend_from_slice(chunk));
        Some(message)
    }
}

fn verified(id: TransferId, message: Cow<'_, [u8]>) -> Result<Cow<'_, [u8]>, ChunkError> {
    if TransferId::of(&message) == id { Ok(message) } else { Err(ChunkError::Digest) }
}
