//! Messages of the federation that wait for the broker.

use std::collections::{BTreeMap, VecDeque};

use evenhand_link::{MessageQueue, OutboundMessage};
use evenhand_protocol::identity::{FederationId, NodeId};
use evenhand_protocol::message::{Message, Refusal};
use evenhand_protocol::topic::{self, Channel};

use evenhand_federation::{Effect, OrderPayload};

/// Effects in order, at most one of each kind for each node: a newer one replaces one that was not sent yet, in its place.
/// However much nodes ask for, no more than that can wait.
pub(super) struct OutboundQueue {
    federation: FederationId,
    order: VecDeque<OutboundKey>,
    waiting: BTreeMap<OutboundKey, Effect>,
}

/// The recipient, or all nodes, and the kind of message.
type OutboundKey = (Option<NodeId>, OutboundKind);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum OutboundKind {
    Manifest,
    Account,
    Task,
    Measure,
    Graph,
    Refused(Refusal),
}

impl OutboundQueue {
    pub(super) fn new(federation: FederationId) -> Self {
        Self { federation, order: VecDeque::new(), waiting: BTreeMap::new() }
    }

    pub(super) fn extend(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let Some(key) = key(&effect) else { continue };
            if self.waiting.insert(key.clone(), effect).is_none() {
                self.order.push_back(key);
            }
        }
    }

    fn pop(&mut self) -> Option<Effect> {
        self.waiting.remove(&self.order.pop_front()?)
    }

    pub(super) fn clear(&mut self) {
        self.order.clear();
        self.waiting.clear();
    }
}

impl MessageQueue for OutboundQueue {
    fn next(&mut self) -> Option<OutboundMessage> {
        outgoing(self.pop()?, &self.federation)
    }
}

/// The key of an effect; `None` if it is not for the broker.
fn key(effect: &Effect) -> Option<OutboundKey> {
    match effect {
        Effect::Manifest { to, .. } => Some((to.clone(), OutboundKind::Manifest)),
        Effect::Account { node, .. } => Some((Some(node.clone()), OutboundKind::Account)),
        Effect::Publish { node, payload } => {
            let kind = match payload {
                OrderPayload::Train(_) => OutboundKind::Task,
                OrderPayload::Measure(_) => OutboundKind::Measure,
                OrderPayload::Graph { .. } => OutboundKind::Graph,
                OrderPayload::Refused { refusal, .. } => OutboundKind::Refused(*refusal),
            };
            Some((Some(node.clone()), kind))
        }
        Effect::Record(_) | Effect::Persist(_) => None,
    }
}

/// Topic, message and retain flag of an effect; `None` if it is not for the broker.
fn outgoing(effect: Effect, federation: &FederationId) -> Option<OutboundMessage> {
    match effect {
        Effect::Manifest { to: None, manifest } => {
            let topic = topic::manifest(federation);
            Some(OutboundMessage { topic, message: Message::Manifest(manifest), retain: true })
        }
        // On the node's own topic: a thousand births must not cause a million deliveries.
        Effect::Manifest { to: Some(node), manifest } => {
            let topic = topic::node(federation, &node, Channel::Task);
            Some(OutboundMessage { topic, message: Message::Manifest(manifest), retain: false })
        }
        Effect::Account { node, account } => {
            let topic = topic::node(federation, &node, Channel::Account);
            Some(OutboundMessage { topic, message: Message::Account(account), retain: true })
        }
        Effect::Publish { node, payload } => {
            let topic = topic::node(federation, &node, Channel::Task);
            Some(OutboundMessage { topic, message: Message::Order(payload.order()), retain: false })
        }
        Effect::Record(_) | Effect::Persist(_) => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn refused(node: &str, round: u32, refusal: Refusal) -> Effect {
        let node = NodeId::new(node).unwrap();
        Effect::Publish { node, payload: OrderPayload::Refused { round, refusal } }
    }

    #[test]
    fn at_most_one_message_of_each_kind_waits_for_a_node_and_it_is_the_newest() {
        let graph = |bytes: u8| Effect::Publish {
            node: NodeId::new("a").unwrap(),
            payload: OrderPayload::Graph {
                graph: evenhand_protocol::identity::Digest::of(b"graph"),
                onnx: vec![bytes].into(),
            },
        };
        let mut queue = OutboundQueue::new(FederationId::new("town").unwrap());
        for round in 0..100 {
            queue.extend(vec![
                graph(round),
                refused("b", round.into(), Refusal::Rate),
                refused("a", round.into(), Refusal::Rate),
                refused("a", round.into(), Refusal::Late),
            ]);
        }
        let sent: Vec<Effect> = std::iter::from_fn(|| queue.pop()).collect();
        let expected = [
            graph(99),
            refused("b", 99, Refusal::Rate),
            refused("a", 99, Refusal::Rate),
            refused("a", 99, Refusal::Late),
        ];
        assert_eq!(sent, expected);
        assert!(queue.waiting.is_empty() && queue.order.is_empty());
    }
}
