//! Encoding of messages: the protocol version, then the message in postcard.

use alloc::vec::Vec;

use crate::limits::MessageLimits;
use crate::message::{Answer, Birth, Life, Message, MissingChunks, Order, Status};

/// The protocol version of this program; it changes when the messages do.
pub const VERSION: u16 = 3;

/// The reason why bytes cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The sender uses another version.
    #[error("the message is in protocol version {theirs}, this program speaks {ours}; update the older side")]
    Version {
        /// The sender's version.
        theirs: u16,
        /// This program's version.
        ours: u16,
    },
    /// A length exceeds what the receiver allows.
    #[error("{what}: {length} exceeds the limit of {limit}")]
    TooLong {
        /// The part that is too long.
        what: &'static str,
        /// Its length.
        length: usize,
        /// The length allowed.
        limit: usize,
    },
    /// The bytes are no message.
    #[error("the bytes are no message of this version")]
    Malformed,
    /// A whole message, followed by more bytes.
    #[error("{0} bytes follow the end of the message")]
    Trailing(usize),
}

/// The bytes of `message`.
pub fn encode(message: &Message) -> Vec<u8> {
    postcard::to_allocvec(&(VERSION, message)).expect("messages hold nothing that postcard cannot write")
}

/// The message in `bytes`, if it is within `limits`.
///
/// Everything of variable length is a block or a text that lies in `bytes` as a whole, so decoding
/// allocates a small multiple of `bytes.len()` at most, whatever the bytes claim.
pub fn decode(bytes: &[u8], limits: &MessageLimits) -> Result<Message, DecodeError> {
    within("bytes of a message", bytes.len(), limits.message_bytes_max)?;
    let (theirs, body) = postcard::take_from_bytes::<u16>(bytes).map_err(|_| DecodeError::Malformed)?;
    if theirs != VERSION {
        return Err(DecodeError::Version { theirs, ours: VERSION });
    }
    let (message, rest) = postcard::take_from_bytes::<Message>(body).map_err(|_| DecodeError::Malformed)?;
    if !rest.is_empty() {
        return Err(DecodeError::Trailing(rest.len()));
    }
    check(&message, limits)?;
    Ok(message)
}

fn within(what: &'static str, length: usize, limit: usize) -> Result<(), DecodeError> {
    if length <= limit { Ok(()) } else { Err(DecodeError::TooLong { what, length, limit }) }
}

/// Checks every length that the types of the message do not bound.
fn check(message: &Message, limits: &MessageLimits) -> Result<(), DecodeError> {
    match message {
        Message::Status(Status { session: _, life: Life::Born(Birth { token, software, .. }) }) => {
            within("bytes of a token", token.as_ref().map_or(0, |token| token.len()), limits.text_bytes_max)?;
            within("bytes of a software version", software.len(), limits.text_bytes_max)
        }
        Message::Order(Order::Train(train)) => {
            within("weights", train.weights.as_ref().map_or(0, Vec::len), limits.parameters_max)
        }
        Message::Answer(Answer::Update(update)) => {
            within("entries of an update", update.vector.entries(), limits.parameters_max)
        }
        Message::Answer(Answer::Measured(measured)) => {
            within("entries of a reference gradient", measured.vector.entries(), limits.parameters_max)
        }
        Message::Order(Order::Resend(missing)) | Message::Answer(Answer::Resend(missing)) => {
            check_missing(missing, limits)
        }
        // An ONNX file is bounded by the message itself; the rest has no variable lengths.
        Message::Order(Order::Graph { .. } | Order::Refused { .. } | Order::Measure(_))
        | Message::Answer(
            Answer::Decline { .. }
            | Answer::Unmeasured { .. }
            | Answer::NeedGraph(_)
            | Answer::NeedWeights { .. },
        )
        | Message::Status(Status { life: Life::Dead, .. })
        | Message::Manifest(_)
        | Message::Account(_) => Ok(()),
    }
}

fn check_missing(missing: &MissingChunks, limits: &MessageLimits) -> Result<(), DecodeError> {
    within("missing chunks", missing.chunks.len(), usize::from(limits.chunks_max))
}
