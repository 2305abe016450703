//! What a federation still has to say.

use std::collections::{BTreeMap, VecDeque};

use evenhand_link::{Outgoing, Queue};
use evenhand_protocol::identity::{FederationId, NodeId};
use evenhand_protocol::message::{Message, Refusal};
use evenhand_protocol::topic::{self, Channel};

use evenhand_federation::{Effect, OrderPayload};

/// Letters in order, of each kind at most one to each node: a newer one takes the place of one that was not sent yet.
/// However much nodes ask for, no more than that can wait.
pub(super) struct Letters {
    federation: FederationId,
    order: VecDeque<Kind>,
    waiting: BTreeMap<Kind, Effect>,
}

/// To whom, and about what.
type Kind = (Option<NodeId>, Subject);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Manifest,
    Account,
    Task,
    Graph,
    Refused(Refusal),
}

impl Letters {
    pub(super) fn of(federation: FederationId) -> Self {
        Self { federation, order: VecDeque::new(), waiting: BTreeMap::new() }
    }

    pub(super) fn extend(&mut self, words: Vec<Effect>) {
        for word in words {
            let Some(kind) = kind(&word) else { continue };
            if self.waiting.insert(kind.clone(), word).is_none() {
                self.order.push_back(kind);
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

impl Queue for Letters {
    fn next(&mut self) -> Option<Outgoing> {
        address(self.pop()?, &self.federation)
    }
}

/// What a word is about; nothing if it is not for the broker.
fn kind(word: &Effect) -> Option<Kind> {
    match word {
        Effect::Manifest { to, .. } => Some((to.clone(), Subject::Manifest)),
        Effect::Account { node, .. } => Some((Some(node.clone()), Subject::Account)),
        Effect::Publish { node, dispatch } => {
            let subject = match dispatch {
                OrderPayload::Train(_) => Subject::Task,
                OrderPayload::Graph { .. } => Subject::Graph,
                OrderPayload::Refused { refusal, .. } => Subject::Refused(*refusal),
            };
            Some((Some(node.clone()), subject))
        }
        Effect::Record(_) | Effect::Persist(_) => None,
    }
}

/// Where a word goes, as what, and whether it stays there; nothing if it is not for the broker.
fn address(word: Effect, federation: &FederationId) -> Option<Outgoing> {
    match word {
        Effect::Manifest { to: None, manifest } => {
            let topic = topic::manifest(federation);
            Some(Outgoing { topic, message: Message::Manifest(manifest), retain: true })
        }
        // On the node's own topic: a thousand births must not be a million deliveries.
        Effect::Manifest { to: Some(node), manifest } => {
            let topic = topic::node(federation, &node, Channel::Task);
            Some(Outgoing { topic, message: Message::Manifest(manifest), retain: false })
        }
        Effect::Account { node, account } => {
            let topic = topic::node(federation, &node, Channel::Account);
            Some(Outgoing { topic, message: Message::Account(account), retain: true })
        }
        Effect::Publish { node, dispatch } => {
            let topic = topic::node(federation, &node, Channel::Task);
            Some(Outgoing { topic, message: Message::Order(dispatch.order()), retain: false })
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
        Effect::Publish { node, dispatch: OrderPayload::Refused { round, refusal } }
    }

    #[test]
    fn what_waits_is_bounded_by_nodes_and_kinds_and_the_newest_counts() {
        let graph = |bytes: u8| Effect::Publish {
            node: NodeId::new("a").unwrap(),
            dispatch: OrderPayload::Graph {
                graph: evenhand_protocol::identity::Digest::of(b"graph"),
                onnx: vec![bytes].into(),
            },
        };
        let mut letters = Letters::of(FederationId::new("town").unwrap());
        for round in 0..100 {
            letters.extend(vec![
                graph(round),
                refused("b", round.into(), Refusal::Rate),
                refused("a", round.into(), Refusal::Rate),
                refused("a", round.into(), Refusal::Late),
            ]);
        }
        let said: Vec<Effect> = std::iter::from_fn(|| letters.pop()).collect();
        let expected = [
            graph(99),
            refused("b", 99, Refusal::Rate),
            refused("a", 99, Refusal::Rate),
            refused("a", 99, Refusal::Late),
        ];
        assert_eq!(said, expected);
        assert!(letters.waiting.is_empty() && letters.order.is_empty());
    }
}
