//! Between the link and the federation: topics to inputs, effects to topics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use evenhand_link::{LinkError, LinkEvent, Outbox};
use evenhand_protocol::identity::FederationId;
use evenhand_protocol::message::Message;
use evenhand_protocol::topic::{self, Channel};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::federation::{Effect, Input};

/// No connection: what is said now is lost, and said again with the next one.
const AWAY: u64 = 0;

/// Says what the federation wants said, in order, without making it wait.
pub(super) struct Post {
    letters: mpsc::UnboundedSender<(u64, Effect)>,
    /// The number of the present connection, or [`AWAY`]. Letters of an earlier one are not sent: the
    /// federation has said them again.
    connection: Arc<AtomicU64>,
    carrier: JoinHandle<()>,
    connections: AtomicU64,
}

impl Post {
    pub(super) fn open(outbox: Outbox, federation: FederationId) -> Self {
        let (letters, bag) = mpsc::unbounded_channel();
        let connection = Arc::new(AtomicU64::new(AWAY));
        let carrier = tokio::spawn(carry(bag, outbox, federation, Arc::clone(&connection)));
        Self { letters, connection, carrier, connections: AtomicU64::new(0) }
    }

    /// What an event of the link means to the federation.
    pub(super) fn heed(&self, event: LinkEvent, federation: &FederationId) -> Option<Input> {
        match event {
            LinkEvent::Connected { .. } => {
                let number = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
                self.connection.store(number, Ordering::Relaxed);
                tracing::info!("connected to the broker");
                Some(Input::LinkRestored)
            }
            LinkEvent::Lost { cause } => {
                self.connection.store(AWAY, Ordering::Relaxed);
                tracing::warn!(cause, "lost the broker");
                None
            }
            LinkEvent::Message { topic, message } => {
                let (node, channel) = topic::parse_node(federation, &topic)?;
                Some(match (channel, message) {
                    (Channel::Status, Message::Status(status)) => Input::Status { node, status },
                    (Channel::Update, Message::Answer(answer)) => Input::Answer { node, answer },
                    _ => Input::Malformed { node },
                })
            }
            LinkEvent::Malformed { topic, error } => {
                let (node, _) = topic::parse_node(federation, &topic)?;
                tracing::debug!(%node, %error, "not a message");
                Some(Input::Malformed { node })
            }
        }
    }

    /// Sends these words after those before them.
    pub(super) fn send(&self, words: Vec<Effect>) {
        let connection = self.connection.load(Ordering::Relaxed);
        if connection != AWAY {
            for word in words {
                // The carrier ends only with the link, which the loop hears of by itself.
                let _link_closed = self.letters.send((connection, word));
            }
        }
    }

    /// Waits until everything is said, but not for ever.
    pub(super) async fn close(self, patience: Duration) {
        drop(self.letters);
        let carrier = self.carrier.abort_handle();
        if timeout(patience, self.carrier).await.is_err() {
            carrier.abort();
        }
    }
}

async fn carry(
    mut bag: mpsc::UnboundedReceiver<(u64, Effect)>,
    outbox: Outbox,
    federation: FederationId,
    connection: Arc<AtomicU64>,
) {
    while let Some((of, word)) = bag.recv().await {
        if of != connection.load(Ordering::Relaxed) {
            continue;
        }
        let Some((topic, message, retain)) = address(word, &federation) else { continue };
        match outbox.publish(&topic, &message, retain).await {
            Ok(()) => {}
            Err(LinkError::Closed) => return,
            Err(error) => tracing::error!(topic, %error, "cannot be sent"),
        }
    }
}

/// Where a word goes, as what, and whether it stays there.
fn address(word: Effect, federation: &FederationId) -> Option<(String, Message, bool)> {
    match word {
        Effect::Manifest { to: None, manifest } => {
            Some((topic::manifest(federation), Message::Manifest(manifest), true))
        }
        // On the node's own topic: a thousand births must not be a million deliveries.
        Effect::Manifest { to: Some(node), manifest } => {
            let topic = topic::node(federation, &node, Channel::Task);
            Some((topic, Message::Manifest(manifest), false))
        }
        Effect::Account { node, account } => {
            let topic = topic::node(federation, &node, Channel::Account);
            Some((topic, Message::Account(account), true))
        }
        Effect::Publish { node, dispatch } => {
            let topic = topic::node(federation, &node, Channel::Task);
            Some((topic, Message::Order(dispatch.order()), false))
        }
        Effect::Record(_) | Effect::Persist(_) => None,
    }
}
