//! Between the link and the federation: topics to inputs, effects to topics.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use evenhand_link::{LinkError, LinkEvent, Outbox};
use evenhand_protocol::identity::{FederationId, NodeId};
use evenhand_protocol::message::{Message, Refusal};
use evenhand_protocol::topic::{self, Channel};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::federation::{Dispatch, Effect, Input};

/// Topics that are swept at most; a broker whose rules forbid it may drop the link for each.
const SWEPT_MAX: usize = 1000;

/// Says what the federation wants said, in order, without making it wait.
pub(super) struct Post {
    bag: Arc<Bag>,
    carrier: JoinHandle<()>,
    outbox: Outbox,
    /// Without a connection what is said is lost, and said again with the next one.
    connected: bool,
    /// Where the broker was asked to forget what it keeps.
    swept: BTreeSet<String>,
}

impl Post {
    pub(super) fn open(outbox: Outbox, federation: FederationId) -> Self {
        let bag = Arc::new(Bag::default());
        let carrier = tokio::spawn(carry(Arc::clone(&bag), outbox.clone(), federation));
        Self { bag, carrier, outbox, connected: false, swept: BTreeSet::new() }
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
                self.bag.letters().clear();
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
            self.bag.letters().extend(words);
            self.bag.changed.notify_one();
        }
    }

    /// Waits until everything is said, but not for ever.
    pub(super) async fn close(self, patience: Duration) {
        self.bag.letters().closed = true;
        self.bag.changed.notify_one();
        let carrier = self.carrier.abort_handle();
        if timeout(patience, self.carrier).await.is_err() {
            carrier.abort();
        }
    }
}

/// What waits for the broker.
#[derive(Default)]
struct Bag {
    letters: Mutex<Letters>,
    changed: Notify,
}

impl Bag {
    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next letter; none when the bag is closed and empty.
    async fn next(&self) -> Option<Effect> {
        loop {
            {
                let mut letters = self.letters();
                let next = letters.pop();
                if next.is_some() || letters.closed {
                    return next;
                }
            }
            self.changed.notified().await;
        }
    }
}

/// Letters in order, of each kind at most one to each node: a newer one takes the place of one that was not sent yet.
/// However much nodes ask for, no more than that can wait.
#[derive(Default)]
struct Letters {
    order: VecDeque<Kind>,
    waiting: BTreeMap<Kind, Effect>,
    closed: bool,
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
    fn extend(&mut self, words: Vec<Effect>) {
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

    fn clear(&mut self) {
        self.order.clear();
        self.waiting.clear();
    }
}

/// What a word is about; nothing if it is not for the broker.
fn kind(word: &Effect) -> Option<Kind> {
    match word {
        Effect::Manifest { to, .. } => Some((to.clone(), Subject::Manifest)),
        Effect::Account { node, .. } => Some((Some(node.clone()), Subject::Account)),
        Effect::Publish { node, dispatch } => {
            let subject = match dispatch {
                Dispatch::Train(_) => Subject::Task,
                Dispatch::Graph { .. } => Subject::Graph,
                Dispatch::Refused { refusal, .. } => Subject::Refused(*refusal),
            };
            Some((Some(node.clone()), subject))
        }
        Effect::Record(_) | Effect::Persist(_) => None,
    }
}

async fn carry(bag: Arc<Bag>, outbox: Outbox, federation: FederationId) {
    while let Some(word) = bag.next().await {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn refused(node: &str, round: u32, refusal: Refusal) -> Effect {
        let node = NodeId::new(node).unwrap();
        Effect::Publish { node, dispatch: Dispatch::Refused { round, refusal } }
    }

    #[test]
    fn what_waits_is_bounded_by_nodes_and_kinds_and_the_newest_counts() {
        let graph = |bytes: u8| Effect::Publish {
            node: NodeId::new("a").unwrap(),
            dispatch: Dispatch::Graph {
                graph: evenhand_protocol::identity::Digest::of(b"graph"),
                onnx: vec![bytes].into(),
            },
        };
        let mut letters = Letters::default();
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
