//! Reasons why received bytes are not believed.

use crate::admission::Rejection;

/// The reason why received bytes are not believed. Nothing follows from such bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The bytes have no form that is known here.
    #[error("the message is not sealed; its sender is older than this program, or forges")]
    NotSealed,
    /// The topic is none on which this is said.
    #[error("the message belongs to another topic")]
    Topic,
    /// There is no session it could belong to.
    #[error("the message belongs to no session that is open")]
    NoSession,
    /// The bytes were not made by the peer, or not for this place.
    #[error("the message is forged or damaged")]
    Forged,
    /// A number that was used before.
    #[error("the message was received before")]
    Replayed,
    /// A handshake that is older than one that was seen.
    #[error("the handshake is older than one that was received before")]
    Outdated,
    /// More handshakes than one sender needs.
    #[error("too many handshakes at a time")]
    TooMany,
    /// A node that may not take part.
    #[error("the node is not admitted: {0}")]
    Rejected(Rejection),
}
