//! Errors of a link.

use evenhand_program::exit::Exit;
use evenhand_protocol::chunk::ChunkError;

use crate::TlsError;

/// The reason why a link cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// No client id.
    #[error("the client id is empty; give every node a stable name of its own")]
    EmptyClientId,
    /// A topic with wildcards or forbidden characters.
    #[error("{0:?} is not a valid topic to publish on")]
    InvalidTopic(String),
    /// The message cannot be cut into chunks.
    #[error(transparent)]
    Chunk(#[from] ChunkError),
    /// A retained message or will that does not fit into one packet: a broker retains one packet a topic.
    #[error(
        "a retained message or will on {topic} takes {chunks} packets, and a broker retains one; raise payload_bytes_max"
    )]
    RetainedTooLong {
        /// The topic.
        topic: String,
        /// Packets it would take.
        chunks: u16,
    },
    /// The broker does not answer, or refuses the connection.
    #[error("cannot reach broker {broker}: {cause}; check the address, or start a broker there")]
    Unreachable {
        /// `HOST:PORT`.
        broker: String,
        /// The latest error.
        cause: String,
    },
    /// The broker did not acknowledge everything before the link was closed.
    #[error("{0} packets were not acknowledged by the broker when the link was closed")]
    Unacknowledged(usize),
    /// The link was closed.
    #[error("the link is closed")]
    Closed,
}

impl LinkError {
    /// The exit code of a program that ends because of it.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Tls(_) | Self::EmptyClientId | Self::RetainedTooLong { .. } => Exit::Config,
            Self::Unreachable { .. } | Self::Unacknowledged(_) | Self::Closed => Exit::Broker,
            Self::InvalidTopic(_) | Self::Chunk(_) => Exit::Software,
        }
    }
}
