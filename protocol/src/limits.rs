//! MessageLimits of received messages.

/// Upper bounds that a receiver sets before it parses bytes of others.
///
/// A message that exceeds one of them is refused with an error that names it. The defaults suit the
/// shipped models; a small node lowers them, a federation with a large model raises them on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageLimits {
    /// Bytes of one encoded message, all its chunks together.
    pub message_bytes_max: usize,
    /// Entries of one vector of weights or of one update.
    pub parameters_max: usize,
    /// Bytes of one text, such as a token.
    pub text_bytes_max: usize,
    /// Chunks of one message.
    pub chunks_max: u16,
    /// Incomplete messages of one sender.
    pub incomplete_transfers_max: usize,
    /// Bytes of the incomplete messages of all senders together; several times `message_bytes_max`, or long
    /// messages displace each other.
    pub incomplete_bytes_max: usize,
}

impl Default for MessageLimits {
    fn default() -> Self {
        Self {
            message_bytes_max: 64 << 20,
            parameters_max: 16 << 20,
            text_bytes_max: 1 << 10,
            chunks_max: 16 << 10,
            incomplete_transfers_max: 4,
            incomplete_bytes_max: 256 << 20,
        }
    }
}
