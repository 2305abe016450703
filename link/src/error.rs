//! What can go wrong with a link.

use evenhand_program::exit::Exit;
use evenhand_protocol::chunk::ChunkError;

use crate::TlsError;

/// Why a link cannot do what is asked.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// No client id.
    #[error("the client id is empty; give every node its own stable name")]
    ClientId,
    /// A topic with wildcards or forbidden characters.
    #[error("{0:?} is no topic to publish on")]
    Topic(String),
    /// The message cannot be cut into chunks.
    #[error(transparent)]
    Chunk(#[from] ChunkError),
    /// A retained message or will must fit into one packet, for a broker keeps one packet a topic.
    #[error(
        "a retained message or will on {topic} takes {chunks} packets, and a broker keeps one; raise payload_bytes_max"
    )]
    NotKeepable {
        /// Where it was to be kept.
        topic: String,
        /// How many packets it takes.
        chunks: u16,
    },
    /// The broker does not answer, or refuses us.
    #[error("cannot reach broker {broker}: {cause}; check the address, or start a broker there")]
    Unreachable {
        /// `HOST:PORT`.
        broker: String,
        /// The last thing that went wrong.
        cause: String,
    },
    /// The broker did not acknowledge everything before the link was closed.
    #[error("{0} packets were not acknowledged by the broker when the link was closed")]
    Unflushed(usize),
    /// The link was closed.
    #[error("the link is closed")]
    Closed,
}

impl LinkError {
    /// What a program that ends because of it tells the shell.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Tls(_) | Self::ClientId | Self::NotKeepable { .. } => Exit::Config,
            Self::Unreachable { .. } | Self::Unflushed(_) | Self::Closed => Exit::Broker,
            Self::Topic(_) | Self::Chunk(_) => Exit::Software,
        }
    }
}
