//! From chunks back to messages, whatever the network and the sender do.

use alloc::borrow::{Cow, ToOwned};
use alloc::collections::VecDeque;
use alloc::collections::btree_map::{BTreeMap, Entry};
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::{ChunkError, Header, TransferId};
use crate::limits::Limits;
use crate::message::Missing;

/// How long a transfer may stand still before its missing chunks are asked for, unless configured otherwise.
pub const PATIENCE_MS: u64 = 10_000;

/// How often missing chunks are asked for, each time after twice the wait, before the transfer is given up.
const REQUESTS_MAX: u32 = 4;

/// What a held chunk, transfer or sender costs beside its bytes, roughly: many tiny ones must not be free.
const OVERHEAD_BYTES: usize = 128;

/// Collects chunks into messages.
///
/// Time is whatever growing number of milliseconds the caller passes. A sender's newest transfers
/// supersede its oldest; if all senders together hold too much, those of the sender that announced most are
/// dropped, so that nobody can push out those who want less.
#[derive(Debug)]
pub struct Assembler {
    limits: Limits,
    patience_ms: u64,
    senders: BTreeMap<String, Sender>,
    bytes: usize,
    begun: u64,
}

#[derive(Debug, Default)]
struct Sender {
    /// Oldest first.
    open: VecDeque<Open>,
    /// The transfer that was completed last: its late chunks are repetitions, not the start of another.
    completed: Option<TransferId>,
    touched_ms: u64,
    /// When the oldest of them was begun, counted in transfers of all.
    began: u64,
}

#[derive(Debug)]
struct Open {
    header: Header,
    chunks: BTreeMap<u16, Vec<u8>>,
    cost: usize,
    touched_ms: u64,
    requests: u32,
}

impl Open {
    fn new(header: Header, now_ms: u64) -> Self {
        Self { header, chunks: BTreeMap::new(), cost: OVERHEAD_BYTES, touched_ms: now_ms, requests: 0 }
    }

    /// Holds one more chunk; a repeated one changes nothing, not even the clock.
    fn add(&mut self, index: u16, part: &[u8], now_ms: u64) {
        if let Entry::Vacant(place) = self.chunks.entry(index) {
            place.insert(part.to_vec());
            self.cost += OVERHEAD_BYTES + part.len();
            (self.touched_ms, self.requests) = (now_ms, 0);
        }
    }

    fn missing(&self) -> Missing {
        let chunks = (0..self.header.count).filter(|index| !self.chunks.contains_key(index)).collect();
        Missing { transfer: self.header.transfer, chunks }
    }
}

impl Assembler {
    /// An assembler that asks for missing chunks after `patience_ms` without progress.
    pub fn new(limits: Limits, patience_ms: u64) -> Self {
        Self { limits, patience_ms: patience_ms.max(1), senders: BTreeMap::new(), bytes: 0, begun: 0 }
    }

    /// Takes in one packet of `sender`; the message, if this completes one.
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
            Sender::default()
        });
        from.touched_ms = now_ms;
        if from.completed == Some(header.transfer) {
            // A repeated tail is noise; a repetition from the first chunk on was sent on purpose.
            if header.index != 0 {
                return Ok(None);
            }
            from.completed = None;
        }

        if from.open.is_empty() {
            self.begun += 1;
            from.began = self.begun;
        }
        let before = from.cost();
        let complete = from.take_in(header, part, now_ms, self.limits.open_transfers_max);
        self.bytes = self.bytes + from.cost() - before;
        self.drop_largest(now_ms);
        complete.map(|message| verified(header.transfer, Cow::Owned(message))).transpose()
    }

    /// Transfers of `sender` that are not complete, oldest first, and what they lack.
    pub fn missing(&self, sender: &str) -> Vec<Missing> {
        self.senders.get(sender).into_iter().flat_map(|from| &from.open).map(Open::missing).collect()
    }

    /// Whether any transfer is not complete.
    pub fn waiting(&self) -> bool {
        self.senders.values().any(|from| !from.open.is_empty())
    }

    /// Transfers that stood still too long: whom to ask, and for what. Call it now and then.
    ///
    /// Each is asked for again after twice the wait; after four requests in vain it is given up.
    pub fn overdue(&mut self, now_ms: u64) -> Vec<(String, Missing)> {
        let mut requests = Vec::new();
        for (name, from) in &mut self.senders {
            let before = from.cost();
            let patience_ms = self.patience_ms;
            from.open.retain_mut(|open| {
                let wait_ms = patience_ms.saturating_mul(1 << open.requests);
                if now_ms.saturating_sub(open.touched_ms) < wait_ms {
                    return true;
                }
                if open.requests == REQUESTS_MAX {
                    return false;
                }
                open.requests += 1;
                open.touched_ms = now_ms;
                requests.push((name.clone(), open.missing()));
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

    /// Frees memory at the cost of whoever wants most. Of those who want the same, whoever stood still too long goes first,
    /// longest first; then whoever began last: if those who are ahead went, or took turns, nobody would finish.
    fn drop_largest(&mut self, now_ms: u64) {
        let stalled = |from: &Sender| now_ms.saturating_sub(from.touched_ms) >= self.patience_ms;
        while self.bytes > self.limits.open_bytes_max {
            let burden = |(_, from): &(&String, &Sender)| {
                let silent_since = stalled(from).then_some(Reverse(from.touched_ms));
                (from.announced(), silent_since, from.began)
            };
            let Some(name) = self.senders.iter().max_by_key(burden).map(|(name, _)| name.clone()) else {
                return;
            };
            let cost = self.senders.remove(&name).map_or(0, |from| from.cost());
            self.bytes -= OVERHEAD_BYTES + name.len() + cost;
        }
    }
}

impl Sender {
    /// Bytes that its unfinished transfers will have, as it says; never less than what they hold.
    fn announced(&self) -> usize {
        self.open.iter().map(|open| open.header.total as usize).sum()
    }

    /// What its unfinished transfers cost.
    fn cost(&self) -> usize {
        self.open.iter().map(|open| open.cost).sum()
    }

    /// Adds one chunk; the whole message if it was the last.
    fn take_in(&mut self, header: Header, part: &[u8], now_ms: u64, open_max: usize) -> Option<Vec<u8>> {
        // The same message cut differently: its sender changed its payload limit and began anew.
        self.open.retain(|open| {
            open.header.transfer != header.transfer
                || (open.header.count, open.header.total) == (header.count, header.total)
        });
        let position = match self.open.iter().position(|open| open.header.transfer == header.transfer) {
            Some(position) => position,
            None => {
                while self.open.len() >= open_max.max(1) {
                    self.open.pop_front();
                }
                self.open.push_back(Open::new(header, now_ms));
                self.open.len() - 1
            }
        };
        let open = &mut self.open[position];
        open.add(header.index, part, now_ms);
        if open.chunks.len() < usize::from(header.count) {
            return None;
        }
        let complete = self.open.remove(position)?;
        self.completed = Some(header.transfer);
        let mut message = Vec::with_capacity(header.total as usize);
        complete.chunks.values().for_each(|chunk| message.extend_from_slice(chunk));
        Some(message)
    }
}

fn verified(id: TransferId, message: Cow<'_, [u8]>) -> Result<Cow<'_, [u8]>, ChunkError> {
    if TransferId::of(&message) == id { Ok(message) } else { Err(ChunkError::Digest) }
}
