//! Messages between the coordinator and its nodes.

use std::cmp::Ordering;
use std::sync::Arc;

use evenhand_federation::Tick;
use evenhand_protocol::chunk::{self, Assembler, Transfer};
use evenhand_protocol::envelope;
use evenhand_protocol::limits::Limits;
use evenhand_protocol::message::Message;

use super::company::Carriage;

/// A message as it is handed over.
#[derive(Debug, Clone)]
pub(super) enum Parcel {
    /// In the packets that a broker would carry.
    Packed(Arc<[Vec<u8>]>),
    Whole(Arc<Message>),
}

impl Parcel {
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Parcel::Packed(packets) => packets.iter().map(|packet| packet.len() as u64).sum(),
            Parcel::Whole(_) => 0,
        }
    }
}

impl Carriage {
    pub(super) fn parcel(self, message: Message) -> Parcel {
        match self {
            Carriage::Packed => {
                let transfer = Transfer::new(envelope::encode(&message), chunk::PAYLOAD_BYTES_MAX);
                let transfer = transfer.expect("a model that fits memory fits a transfer");
                Parcel::Packed(transfer.chunks().collect())
            }
            Carriage::Whole => Parcel::Whole(Arc::new(message)),
        }
    }
}

/// A message on its way.
pub(super) struct Mail {
    pub(super) at: Tick,
    /// Breaks ties, so that equal runs stay equal.
    pub(super) sequence: u64,
    pub(super) to: Address,
    pub(super) parcel: Parcel,
}

impl Ord for Mail {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl PartialOrd for Mail {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Mail {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Mail {}

#[derive(Debug, Clone, Copy)]
pub(super) enum Address {
    Coordinator { from: usize },
    Node(usize),
}

/// Puts packets together again.
pub(super) struct Inbox {
    assembler: Assembler,
    limits: Limits,
}

impl Inbox {
    pub(super) fn new() -> Self {
        let limits = Limits::default();
        Self { assembler: Assembler::new(limits, chunk::PATIENCE_MS), limits }
    }

    /// The message in a parcel, whose packets arrive together.
    pub(super) fn take_in(&mut self, sender: &str, parcel: Parcel) -> Option<Message> {
        match parcel {
            Parcel::Packed(packets) => packets.iter().find_map(|packet| {
                let bytes = self.assembler.accept(sender, packet, 0).ok()??;
                envelope::decode(&bytes, &self.limits).ok()
            }),
            Parcel::Whole(message) => Some(Arc::unwrap_or_clone(message)),
        }
    }
}
