//! Long messages in pieces that every broker accepts.

use serde::{Deserialize, Serialize};

/// Names one transfer: the first bytes of the digest of the whole message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TransferId(pub [u8; 16]);
