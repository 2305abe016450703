//! What comes in.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use evenhand_protocol::message::Message;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time;

use crate::shared::Shared;
use crate::{Broker, LinkError};

/// What happens on a link.
#[derive(Debug, Clone, PartialEq)]
pub enum LinkEvent {
    /// The broker is there and has granted our subscriptions.
    Connected {
        /// Whether it still knew us; if not, what others said meanwhile is gone.
        session_present: bool,
    },
    /// The broker is away or refuses us; the link goes on trying.
    Lost {
        /// Why, for people.
        cause: String,
    },
    /// Somebody said something.
    Message {
        /// Where.
        topic: String,
        /// What.
        message: Message,
        /// Whether the broker had kept it from before our subscription: whoever said it may be gone.
        retained: bool,
    },
    /// Somebody sent bytes that are no message for us.
    Malformed {
        /// Where.
        topic: String,
        /// Whether the broker keeps them, so that they come again with every subscription.
        retained: bool,
        /// What is wrong with them.
        error: Malformed,
    },
}

/// Why bytes are no message for us.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The packet is no chunk, or its message was damaged.
    #[error(transparent)]
    Chunk(#[from] evenhand_protocol::chunk::ChunkError),
    /// The message cannot be decoded.
    #[error(transparent)]
    Envelope(#[from] evenhand_protocol::envelope::DecodeError),
}

impl Malformed {
    /// Whether there is nothing wrong but the length, which is beyond what the receiver takes.
    pub fn is_too_long(&self) -> bool {
        use evenhand_protocol::chunk::ChunkError;
        use evenhand_protocol::envelope::DecodeError;
        matches!(
            self,
            Self::Chunk(ChunkError::TooLong { .. } | ChunkError::TooMany { .. })
                | Self::Envelope(DecodeError::TooLong { .. })
        )
    }
}

/// The receiving side of a link. Dropping it ends the link without a goodbye.
#[derive(Debug)]
pub struct Events {
    pub(crate) broker: Broker,
    pub(crate) shared: Arc<Shared>,
    pub(crate) queue: UnboundedReceiver<(LinkEvent, usize)>,
    /// What came before the first connection was complete; read before the queue.
    pub(crate) early: VecDeque<LinkEvent>,
}

impl Events {
    /// The next event; none when the link is closed. Safe to use in `select!`.
    pub async fn next(&mut self) -> Option<LinkEvent> {
        if let Some(event) = self.early.pop_front() {
            return Some(event);
        }
        self.next_in_queue().await
    }

    async fn next_in_queue(&mut self) -> Option<LinkEvent> {
        let (event, bytes) = self.queue.recv().await?;
        self.shared.inbox.remove(bytes);
        self.shared.inbox.release(&self.shared.client);
        Some(event)
    }

    /// Waits until the broker is there for the first time; [`Events::next`] then begins with `Connected`.
    ///
    /// A program that is started by hand uses this to say at once what is wrong.
    pub async fn first_connection(&mut self, within: Duration) -> Result<(), LinkError> {
        let mut cause = format!("no answer within {within:?}");
        let connected = async {
            loop {
                match self.next_in_queue().await {
                    Some(event @ LinkEvent::Connected { .. }) => {
                        self.early.push_front(event);
                        break Ok(());
                    }
                    Some(LinkEvent::Lost { cause: latest }) => cause = latest,
                    // A broker that knows us may deliver before it confirms our subscriptions.
                    Some(event) => self.early.push_back(event),
                    None => break Err(LinkError::Closed),
                }
            }
        };
        match time::timeout(within, connected).await {
            Ok(outcome) => outcome,
            Err(_) => Err(LinkError::Unreachable { broker: self.broker.to_string(), cause }),
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.shared.end();
    }
}
