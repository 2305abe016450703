//! How much foreign bytes may ask of us.

/// Upper bounds that a receiver sets before it looks at foreign bytes.
///
/// A message that exceeds one of them is refused with an error that names it. The defaults suit the
/// models that are shipped; a small node lowers them, a federation with a large model raises them on
/// both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one encoded message, all its chunks together.
    pub message_bytes_max: usize,
    /// Entries of one vector of weights or of one update.
    pub parameters_max: usize,
    /// Bytes of one text, such as a token.
    pub text_bytes_max: usize,
    /// Chunks of one message.
    pub chunks_max: u16,
    /// Unfinished messages of one sender.
    pub open_transfers_max: usize,
    /// Bytes of the unfinished messages of all senders together; several times `message_bytes_max`, or long
    /// messages push each other out.
    pub open_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes_max: 64 << 20,
            parameters_max: 16 << 20,
            text_bytes_max: 1 << 10,
            chunks_max: 16 << 10,
            open_transfers_max: 4,
            open_bytes_max: 256 << 20,
        }
    }
}
