//! The adapter between link and federation: events to inputs, effects to messages.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use evenhand_link::{BackgroundPublisher, LinkEvent, MessageError, Publisher};
use evenhand_program::log_rate::LogRate;
use evenhand_protocol::identity::{FederationId, NodeId};
use evenhand_protocol::message::{Life, Message, Status};
use evenhand_protocol::topic::{self, Channel};

use super::birth_watch::BirthWatch;
use super::outbound_queue::OutboundQueue;
use evenhand_federation::{Effect, Input};

/// Retained messages that are cleared at most; a broker that does not permit it may close the link for each.
const CLEARED_MAX: usize = 1000;

/// Lines about connections in a minute.
const LINK_LINES: u32 = 6;

/// Different causes of one disconnection that are logged.
const CAUSES_MAX: usize = 8;

/// Sends the federation's messages in order, without making it wait, and converts link events to its inputs.
pub(super) struct LinkAdapter {
    queue: BackgroundPublisher<OutboundQueue>,
    publisher: Publisher,
    /// Without a connection messages are discarded; the federation repeats them with the next one.
    connected: bool,
    /// Topics whose retained message was cleared.
    cleared: BTreeSet<String>,
    births: BirthWatch,
    /// Log lines about the connection.
    lines: LogRate,
    /// The causes that were logged since the last connection.
    causes: BTreeSet<String>,
    /// Log lines about messages that nobody vouches for.
    refusals: LogRate,
}

impl LinkAdapter {
    pub(super) fn new(publisher: Publisher, federation: FederationId) -> Self {
        let queue = BackgroundPublisher::start(publisher.clone(), OutboundQueue::new(federation));
        let lines = LogRate::default().with_lines(LINK_LINES);
        let (cleared, causes) = (BTreeSet::new(), BTreeSet::new());
        let (births, refusals) = (BirthWatch::default(), LogRate::default());
        Self { queue, publisher, connected: false, cleared, births, lines, causes, refusals }
    }

    /// The federation's input for an event of the link.
    pub(super) fn input(&mut self, event: LinkEvent, federation: &FederationId) -> Option<Input> {
        match event {
            LinkEvent::Connected { .. } => {
                self.connected = true;
                self.causes.clear();
                if let Some(left_out) = self.lines.permit(Instant::now()) {
                    tracing::info!(left_out, "connected to broker");
                }
                Some(Input::LinkRestored)
            }
            LinkEvent::Disconnected { cause } => {
                self.connected = false;
                self.queue.update(OutboundQueue::clear);
                self.log_disconnection(cause);
                None
            }
            LinkEvent::Message { topic, message, retained } => {
                let (node, channel) = topic::parse_node(federation, &topic)?;
                Some(match (channel, message) {
                    (Channel::Status, Message::Status(status)) if retained => {
                        Input::RetainedStatus { node, status }
                    }
                    (Channel::Status, Message::Status(status)) => {
                        self.watch_births(&node, &status);
                        Input::Status { node, status }
                    }
                    (Channel::Update, Message::Answer(answer)) => Input::Answer { node, answer },
                    _ => Input::Malformed { node },
                })
            }
            LinkEvent::Refused { topic, retained, error } => {
                self.refused(topic, retained, &error, federation);
                None
            }
            // Of nodes.
            LinkEvent::Secured { .. } | LinkEvent::Rejected(_) => None,
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

    fn log_disconnection(&mut self, cause: String) {
        if self.causes.len() >= CAUSES_MAX || self.causes.contains(&cause) {
            return;
        }
        if let Some(left_out) = self.lines.permit(Instant::now()) {
            tracing::warn!(left_out, "no connection to the broker, trying again: {cause}");
        }
        self.causes.insert(cause);
    }

    fn watch_births(&mut self, node: &NodeId, status: &Status) {
        if matches!(status.life, Life::Born(_)) && self.births.born(node, Instant::now()) {
            tracing::warn!(
                "node {node} comes online again and again: its connection keeps breaking, or two programs use this name; give \
                 each its own"
            );
        }
    }

    /// What nobody vouches for is no input: anybody can send it in any name.
    fn refused(&mut self, topic: String, retained: bool, error: &MessageError, federation: &FederationId) {
        if let Some(left_out) = self.refusals.permit(Instant::now()) {
            tracing::warn!(topic, left_out, "message refused: {error}");
        }
        if retained
            && error.is_too_long()
            && let Some((node, _)) = topic::parse_node(federation, &topic)
        {
            self.clear_retained(topic, &node);
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
