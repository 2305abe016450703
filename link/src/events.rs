//! Events of a link: connection changes and received messages.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use evenhand_protocol::message::Message;
use evenhand_seal::{PublicKey, Rejection, SealError};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time;

use crate::state::LinkState;
use crate::{Broker, LinkError};

/// An event of a link.
#[derive(Debug, Clone, PartialEq)]
pub enum LinkEvent {
    /// The broker accepted the connection and granted the subscriptions.
    Connected {
        /// True if the broker still had the session; if not, messages sent meanwhile are lost.
        session_present: bool,
    },
    /// The connection was lost or refused; the link keeps reconnecting.
    Disconnected {
        /// The address and the reason, for people; the same for the same fault.
        cause: String,
    },
    /// A message arrived.
    Message {
        /// Its topic.
        topic: String,
        /// Its content.
        message: Message,
        /// True if the broker had retained it from before the subscription: its sender may be gone.
        retained: bool,
    },
    /// Bytes arrived that are no message.
    Malformed {
        /// Their topic.
        topic: String,
        /// True if the broker retains them, so that they come again with every subscription.
        retained: bool,
        /// The reason.
        error: MessageError,
    },
    /// With sealing: a session with the coordinator has begun. What was said before may be lost.
    Secured {
        /// The coordinator's key, if it was not known: it is to be saved.
        learnt: Option<PublicKey>,
    },
    /// With sealing: the coordinator does not admit this node.
    Rejected(Rejection),
    /// With sealing: bytes arrived that are not believed. Nothing may follow from them: anybody can send them.
    Refused {
        /// Their topic.
        topic: String,
        /// True if the broker retains them, so that they come again with every subscription.
        retained: bool,
        /// The reason.
        error: MessageError,
    },
}

/// The reason why received bytes are no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The packet is no chunk, or its message was damaged.
    #[error(transparent)]
    Chunk(#[from] evenhand_protocol::chunk::ChunkError),
    /// The message cannot be decoded.
    #[error(transparent)]
    Envelope(#[from] evenhand_protocol::envelope::DecodeError),
    /// The message is not believed.
    #[error(transparent)]
    Seal(#[from] SealError),
}

impl MessageError {
    /// True if nothing is wrong but the length, which exceeds the receiver's limit.
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

/// The receiving side of a link. Dropping it ends the link without an MQTT disconnect.
#[derive(Debug)]
pub struct Events {
    pub(crate) broker: Broker,
    pub(crate) state: Arc<LinkState>,
    pub(crate) queue: UnboundedReceiver<(LinkEvent, usize)>,
    /// Events that arrived before the first connection was complete; returned before those of the queue.
    pub(crate) early: VecDeque<LinkEvent>,
}

impl Events {
    /// The next event; none once the link is closed. Cancellation safe.
    pub async fn next(&mut self) -> Option<LinkEvent> {
        if let Some(event) = self.early.pop_front() {
            return Some(event);
        }
        self.next_in_queue().await
    }

    async fn next_in_queue(&mut self) -> Option<LinkEvent> {
        let (event, bytes) = self.queue.recv().await?;
        self.state.backlog.remove(bytes);
        self.state.backlog.acknowledge(&self.state.client);
        Some(event)
    }

    /// Waits until the link is connected for the first time; [`Events::next`] then begins with `Connected`.
    ///
    /// A program that is started by hand reports a wrong address at once this way.
    pub async fn first_connection(&mut self, timeout: Duration) -> Result<(), LinkError> {
        let mut cause = format!("no answer within {timeout:?}");
        let connected = async {
            loop {
                match self.next_in_queue().await {
                    Some(event @ LinkEvent::Connected { .. }) => {
                        self.early.push_front(event);
                        break Ok(());
                    }
                    Some(LinkEvent::Disconnected { cause: latest }) => cause = latest,
                    // A broker that has the session may deliver before it confirms the subscriptions.
                    Some(event) => self.early.push_back(event),
                    None => break Err(LinkError::Closed),
                }
            }
        };
        match time::timeout(timeout, connected).await {
            Ok(connected) => connected,
            Err(_) => {
                let broker = self.broker.to_string();
                // Of one broker the sentence has the address once.
                let cause = cause.strip_prefix(&format!("{broker}: ")).map(str::to_owned).unwrap_or(cause);
                Err(LinkError::Unreachable { broker, cause })
            }
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.state.end();
    }
}
