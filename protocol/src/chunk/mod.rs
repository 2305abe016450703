//! Chunks of long messages, short enough for every broker.
//!
//! A message is identified by the first bytes of its digest and cut into chunks of equal length (the last may
//! be shorter). The header of each chunk holds the transfer's id, the chunk's position and the length of the whole, so
//! chunks may arrive late, twice or out of order, and a receiver that lost some can request just those.
//! A message that fits is one chunk: about twenty bytes more than the message.
//!
//! ```
//! use evenhand_protocol::chunk::{Assembler, RESEND_AFTER_MS, Transfer};
//! use evenhand_protocol::limits::MessageLimits;
//!
//! let message = vec![7; 5000];
//! let transfer = Transfer::new(message.clone(), 1000)?;
//! let mut assembler = Assembler::new(MessageLimits::default(), RESEND_AFTER_MS);
//! let mut received = None;
//! for packet in transfer.chunks().filter(|packet| *packet != transfer.chunk(2).unwrap()) {
//!     received = assembler.accept("meter-7", &packet, 0)?.map(|message| message.into_owned());
//! }
//! assert_eq!(received, None);
//!
//! // The lost chunk is named; sent again, it completes the message.
//! let missing = assembler.missing("meter-7").remove(0);
//! assert_eq!((missing.transfer, missing.chunks), (transfer.id(), vec![2]));
//! let last = transfer.chunk(2).unwrap();
//! assert_eq!(assembler.accept("meter-7", &last, 0)?.as_deref(), Some(&message[..]));
//! # Ok::<(), evenhand_protocol::chunk::ChunkError>(())
//! ```

mod assembler;
mod sent;

use alloc::vec::Vec;
use core::ops::Range;

use serde::{Deserialize, Serialize};

pub use self::assembler::{Assembler, RESEND_AFTER_MS};
pub use self::sent::SentTransfers;
use crate::identity::Digest;

/// The largest payload unless configured otherwise: below the 128 KiB of the strictest big broker.
pub const PAYLOAD_BYTES_MAX: usize = 120 << 10;

/// The smallest payload limit that leaves room for more than headers.
pub const PAYLOAD_BYTES_MIN: usize = 64;

/// The longest header: the id, and three numbers at their widest.
const HEADER_BYTES_MAX: usize = 16 + 3 + 3 + 5;

/// The id of a transfer: the first bytes of the digest of the whole message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TransferId(pub [u8; 16]);

impl TransferId {
    /// The id of `message`.
    pub fn of(message: &[u8]) -> Self {
        let mut id = [0; 16];
        id.copy_from_slice(&Digest::of(message).0[..16]);
        Self(id)
    }
}

/// The reason why a chunk, or a message to be cut into chunks, is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// The packet is no chunk.
    #[error("the packet is no chunk of a message")]
    Malformed,
    /// The chunk's numbers contradict each other or its length.
    #[error("the chunk's index, count and length contradict each other")]
    Inconsistent,
    /// The message is longer than allowed.
    #[error("a message of {bytes} bytes exceeds the limit of {bytes_max}")]
    TooLong {
        /// Bytes of the message.
        bytes: usize,
        /// Bytes allowed.
        bytes_max: usize,
    },
    /// The message has more chunks than allowed.
    #[error("a message of {chunks} chunks exceeds the limit of {chunks_max}; raise the payload limit")]
    TooMany {
        /// Chunks of the message.
        chunks: usize,
        /// Chunks allowed.
        chunks_max: usize,
    },
    /// All chunks arrived, but they are not the message that was sent.
    #[error("the assembled message does not have the digest it was sent under")]
    Digest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    transfer: TransferId,
    index: u16,
    count: u16,
    total: u32,
}

impl Header {
    /// Splits a packet into its header and its part of the message.
    fn read(packet: &[u8]) -> Result<(Self, &[u8]), ChunkError> {
        let (header, part) = postcard::take_from_bytes::<Self>(packet).map_err(|_| ChunkError::Malformed)?;
        match header.range() {
            Some(range) if range.len() == part.len() => Ok((header, part)),
            _ => Err(ChunkError::Inconsistent),
        }
    }

    /// The chunk's range of the message; none if no message of this length is cut this way.
    fn range(&self) -> Option<Range<usize>> {
        let (total, count, index) = (self.total as usize, usize::from(self.count), usize::from(self.index));
        if index >= count {
            return None;
        }
        let size = total.div_ceil(count).max(1);
        if total.div_ceil(size).max(1) != count {
            return None;
        }
        let start = size * index;
        Some(start..total.min(start.saturating_add(size)))
    }
}

/// An encoded message, ready to be sent in chunks.
#[derive(Debug)]
pub struct Transfer {
    id: TransferId,
    message: Vec<u8>,
    count: u16,
}

impl Transfer {
    /// Cuts `message` so that no packet exceeds `payload_bytes_max`, which is at least [`PAYLOAD_BYTES_MIN`].
    pub fn new(message: Vec<u8>, payload_bytes_max: usize) -> Result<Self, ChunkError> {
        let bytes = message.len();
        if u32::try_from(bytes).is_err() {
            return Err(ChunkError::TooLong { bytes, bytes_max: u32::MAX as usize });
        }
        let chunks = bytes.div_ceil(payload_bytes_max.max(PAYLOAD_BYTES_MIN) - HEADER_BYTES_MAX).max(1);
        let count = u16::try_from(chunks)
            .map_err(|_| ChunkError::TooMany { chunks, chunks_max: usize::from(u16::MAX) })?;
        Ok(Self { id: TransferId::of(&message), message, count })
    }

    /// The id of the transfer.
    pub fn id(&self) -> TransferId {
        self.id
    }

    /// The number of chunks, at least one.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// Bytes of the message, without headers.
    pub fn message_bytes(&self) -> usize {
        self.message.len()
    }

    /// The packet at `index`.
    pub fn chunk(&self, index: u16) -> Option<Vec<u8>> {
        let header = Header { transfer: self.id, index, count: self.count, total: self.message.len() as u32 };
        let part = &self.message[header.range()?];
        let mut packet = Vec::with_capacity(HEADER_BYTES_MAX + part.len());
        packet = postcard::to_extend(&header, packet).expect("a header is a few numbers");
        packet.extend_from_slice(part);
        Some(packet)
    }

    /// All packets in order.
    pub fn chunks(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        (0..self.count).filter_map(|index| self.chunk(index))
    }
}
