//! Between the link and the federation: topics to inputs, effects to topics.

use std::collections::BTreeSet;
use std::time::Duration;

use evenhand_link::{LinkEvent, Outbox, Post};
use evenhand_protocol::identity::{FederationId, NodeId};
use evenhand_protocol::message::Message;
use evenhand_protocol::topic::{self, Channel};

use super::letters::Letters;
use evenhand_federation::{Effect, Input};

/// Topics that are swept at most; a broker whose rules forbid it may drop the link for each.
const SWEPT_MAX: usize = 1000;

/// Says what the federation wants said, in order, without making it wait; and tells it what was heard.
pub(super) struct Mail {
    post: Post<Letters>,
    outbox: Outbox,
    /// Without a connection what is said is lost, and said again with the next one.
    connected: bool,
    /// Where the broker was asked to forget what it keeps.
    swept: BTreeSet<String>,
}

impl Mail {
    pub(super) fn open(outbox: Outbox, federation: FederationId) -> Self {
        let post = Post::open(outbox.clone(), Letters::of(federation));
        Self { post, outbox, connected: false, swept: BTreeSet::new() }
    }

    /// What an event of the link means to the federation.
    pub(super) fn heed(&mut self, event: LinkEvent, federation: &FederationId) -> Option<Input> {
        match event {
            LinkEvent::Connected { .. } => {
                self.connected = true;
                tracing::info!("connected to the broker");
                Some(Input::LinkRestored)
            }
            LinkEvent::Lost { cause } => {
                self.connected = false;
                self.post.sort(Letters::clear);
                tracing::warn!(cause, "lost the broker");
                None
            }
            LinkEvent::Message { topic, message, retained } => {
                let (node, channel) = topic::parse_node(federation, &topic)?;
                Some(match (channel, message) {
                    (Channel::Status, Message::Status(status)) if retained => {
                        Input::RetainedStatus { node, status }
                    }
                    (Channel::Status, Message::Status(status)) => Input::Status { node, status },
                    (Channel::Update, Message::Answer(answer)) => Input::Answer { node, answer },
                    _ => Input::Malformed { node },
                })
            }
            LinkEvent::Malformed { topic, retained, error } => {
                let (node, _) = topic::parse_node(federation, &topic)?;
                tracing::debug!(%node, %error, "not a message");
                if retained && error.is_too_long() {
                    self.sweep(topic, &node);
                }
                Some(Input::Malformed { node })
            }
        }
    }

    /// A message that is not even read shall not come again with every connection.
    fn sweep(&mut self, topic: String, node: &NodeId) {
        if self.swept.len() < SWEPT_MAX && !self.swept.contains(&topic) {
            tracing::warn!(%node, topic, "the broker keeps a message that is too long; asking it to forget it");
            self.outbox.sweep(&topic);
            self.swept.insert(topic);
        }
    }

    /// Sends these words after those before them.
    pub(super) fn send(&self, words: Vec<Effect>) {
        if self.connected {
            self.post.sort(|letters| letters.extend(words));
        }
    }

    /// Waits until everything is said, but not for ever.
    pub(super) async fn close(mut self, patience: Duration) {
        self.post.close(patience).await;
    }
}
