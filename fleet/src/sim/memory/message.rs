//! Messages on their way between the coordinator and its nodes.

use std::cmp::Ordering;
use std::sync::Arc;

use evenhand_federation::Tick;
use evenhand_protocol::chunk::{self, Assembler, Transfer};
use evenhand_protocol::envelope;
use evenhand_protocol::limits::MessageLimits;
use evenhand_protocol::message::Message;

use super::spec::WireMode;

/// A message as it is delivered.
#[derive(Debug, Clone)]
pub(super) enum WireMessage {
    /// In the packets that a broker would carry.
    Encoded(Arc<[Vec<u8>]>),
    Direct(Arc<Message>),
}

impl WireMessage {
    pub(super) fn bytes(&self) -> u64 {
        match self {
            WireMessage::Encoded(packets) => packets.iter().map(|packet| packet.len() as u64).sum(),
            WireMessage::Direct(_) => 0,
        }
    }
}

impl WireMode {
    pub(super) fn encode(self, message: Message) -> WireMessage {
        match self {
            WireMode::Encoded => {
                let transfer = Transfer::new(envelope::encode(&message), chunk::PAYLOAD_BYTES_MAX);
                let transfer = transfer.expect("a model that fits memory fits a transfer");
                WireMessage::Encoded(transfer.chunks().collect())
            }
            WireMode::Direct => WireMessage::Direct(Arc::new(message)),
        }
    }
}

/// A message on its way.
pub(super) struct QueuedMessage {
    pub(super) at: Tick,
    /// Breaks ties, so that equal runs stay equal.
    pub(super) sequence: u64,
    pub(super) to: Receiver,
    pub(super) message: WireMessage,
}

impl Ord for QueuedMessage {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl PartialOrd for QueuedMessage {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for QueuedMessage {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for QueuedMessage {}

#[derive(Debug, Clone, Copy)]
pub(super) enum Receiver {
    Coordinator { from: usize },
    Node(usize),
}

/// The decoder of one receiver.
pub(super) struct MessageDecoder {
    assembler: Assembler,
    limits: MessageLimits,
}

impl MessageDecoder {
    pub(super) fn new() -> Self {
        let limits = MessageLimits::default();
        Self { assembler: Assembler::new(limits, chunk::RESEND_AFTER_MS), limits }
    }

    /// The message, whose packets arrive together; none where it cannot be decoded.
    pub(super) fn decode(&mut self, sender: &str, message: WireMessage) -> Option<Message> {
        match message {
            WireMessage::Encoded(packets) => packets.iter().find_map(|packet| {
                let bytes = self.assembler.accept(sender, packet, 0).ok()??;
                envelope::decode(&bytes, &self.limits).ok()
            }),
            WireMessage::Direct(message) => Some(Arc::unwrap_or_clone(message)),
        }
    }
}
