//! The adapter between link and federation: events to inputs, effects to messages.

use std::collections::BTreeSet;
use std::time::Duration;

use evenhand_link::{BackgroundPublisher, LinkEvent, Publisher};
use evenhand_protocol::identity::{FederationId, NodeId};
use evenhand_protocol::message::Message;
use evenhand_protocol::topic::{self, Channel};

use super::outbound_queue::OutboundQueue;
use evenhand_federation::{Effect, Input};

/// Retained messages that are cleared at most; a broker that does not permit it may close the link for each.
const CLEARED_MAX: usize = 1000;

/// Sends the federation's messages in order, without making it wait, and converts link events to its inputs.
pub(super) struct LinkAdapter {
    queue: BackgroundPublisher<OutboundQueue>,
    publisher: Publisher,
    /// Without a connection messages are discarded; the federation repeats them with the next one.
    connected: bool,
    /// Topics whose retained message was cleared.
    cleared: BTreeSet<String>,
}

impl LinkAdapter {
    pub(super) fn new(publisher: Publisher, federation: FederationId) -> Self {
        let queue = BackgroundPublisher::start(publisher.clone(), OutboundQueue::new(federation));
        Self { queue, publisher, connected: false, cleared: BTreeSet::new() }
    }

    /// The federation's input for an event of the link.
    pub(super) fn input(&mut self, event: LinkEvent, federation: &FederationId) -> Option<Input> {
        match event {
            LinkEvent::Connected { .. } => {
                self.connected = true;
                tracing::info!("connected to broker");
                Some(Input::LinkRestored)
            }
            LinkEvent::Disconnected { cause } => {
                self.connected = false;
                self.queue.update(OutboundQueue::clear);
                tracing::warn!(cause, "disconnected from broker");
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
                tracing::debug!(%error, "node {node}: malformed message");
                if retained && error.is_too_long() {
                    self.clear_retained(topic, &node);
                }
                Some(Input::Malformed { node })
            }
        }
    }

    /// Clears a retained message that is too long to be read, so that it does not arrive with every connection.
    fn clear_retained(&mut self, topic: String, node: &NodeId) {
        if self.cleared.len() < CLEARED_MAX && !self.cleared.contains(&topic) {
            tracing::warn!(topic, "node {node}: clearing a retained message that is too long");
            self.publisher.clear_retained_once(&topic);
            self.cleared.insert(topic);
        }
    }

    /// Queues these messages.
    pub(super) fn send(&self, effects: Vec<Effect>) {
        if self.connected {
            self.queue.update(|queue| queue.extend(effects));
        }
    }

    /// Waits until the queue is empty, up to `limit`.
    pub(super) async fn close(mut self, limit: Duration) {
        self.queue.close(limit).await;
    }
}
