//! The coordinator's sessions with all nodes.

use std::collections::BTreeMap;

use evenhand_protocol::envelope;
use evenhand_protocol::identity::{FederationId, NodeId};
use evenhand_protocol::message::{Life, Message, Status};
use evenhand_protocol::topic::{self, Channel};

use crate::admission::{Admission, Introduction, Rejection};
use crate::entropy::Entropy;
use crate::error::SealError;
use crate::handshake::ReceivedHello;
use crate::hello_budget::HelloBudget;
use crate::keys::{KeyPair, PublicKey};
use crate::peer::Peer;
use crate::wire::{self, Beacon, Incarnation, SERIAL_BYTES_MAX, SealedMessage, Welcome};

/// Names without a session share the budget of so many with one.
const STRANGERS: u32 = 64;

/// Nodes with sessions at most: where joining is open, names cost nothing.
const PEERS_MAX: usize = 50_000;

/// What received bytes were.
#[derive(Debug, PartialEq)]
pub enum CoordinatorReceived {
    /// A message of a node, and what the node is to be sent because its session begins with it.
    Message {
        /// The message.
        message: Vec<u8>,
        /// What it would find retained.
        replies: Vec<SealedMessage>,
    },
    /// A handshake that is to be answered.
    Reply(SealedMessage),
    /// Nothing to be believed.
    Refused(SealError),
    /// Nothing to be believed; its sender is told.
    Told(SealError, SealedMessage),
}

/// The coordinator's sessions with all nodes.
#[derive(Debug)]
pub struct CoordinatorSeal {
    federation: FederationId,
    keys: KeyPair,
    /// The key before the last rotation, which nodes may still greet.
    previous_keys: Option<KeyPair>,
    incarnation: Incarnation,
    entropy: Entropy,
    peers: BTreeMap<NodeId, Peer>,
    strangers: HelloBudget,
    /// True if nodes that come later are sent the newest manifest, as a broker would that retains it.
    repeats_manifest: bool,
    manifest: Option<Vec<u8>>,
}

impl CoordinatorSeal {
    /// A coordinator that has just started.
    pub fn new(federation: FederationId, keys: KeyPair, mut entropy: Entropy) -> Self {
        Self {
            federation,
            keys,
            previous_keys: None,
            incarnation: entropy.bytes(),
            entropy,
            peers: BTreeMap::new(),
            strangers: HelloBudget::shared_by(STRANGERS),
            repeats_manifest: false,
            manifest: None,
        }
    }

    /// The same for a coordinator that does not answer births with the manifest by itself. One that does must not use it: an
    /// older manifest could overtake a newer one.
    pub fn repeating_manifest(self) -> Self {
        Self { repeats_manifest: true, ..self }
    }

    /// The key that nodes are to know.
    pub fn public(&self) -> PublicKey {
        self.keys.public()
    }

    /// Goes on under another key; the one before is still greeted, if it is named. Nodes greet again when they see the beacon,
    /// and are told the key in their session.
    pub fn set_keys(&mut self, keys: KeyPair, previous: Option<KeyPair>) {
        (self.keys, self.previous_keys) = (keys, previous);
        self.incarnation = self.entropy.bytes();
    }

    /// The retained message that makes nodes greet.
    pub fn beacon(&self) -> SealedMessage {
        SealedMessage { topic: topic::manifest(&self.federation), bytes: self.beacon_bytes(), retain: true }
    }

    fn beacon_bytes(&self) -> Vec<u8> {
        let beacon = Beacon { incarnation: self.incarnation, key: *self.keys.public().as_bytes() };
        [&[wire::BEACON][..], &wire::encode(&beacon)].concat()
    }

    /// Ends the sessions of a node: it is sent nothing, and nothing of it is believed, until it is admitted again.
    pub fn forget(&mut self, node: &NodeId) {
        self.peers.remove(node);
    }

    /// Greets the key before the last rotation no longer.
    pub fn end_overlap(&mut self) {
        self.previous_keys = None;
    }

    /// Nodes with a session.
    pub fn secured(&self) -> usize {
        self.peers.values().filter(|peer| peer.is_secured()).count()
    }

    /// Looks at received bytes. `now_ms` is any growing number of milliseconds.
    pub fn receive(
        &mut self,
        topic: &str,
        bytes: &[u8],
        now_ms: u64,
        admission: &mut dyn Admission,
    ) -> CoordinatorReceived {
        let Some((node, channel)) = topic::parse_node(&self.federation, topic) else {
            return CoordinatorReceived::Refused(SealError::Topic);
        };
        if !matches!(channel, Channel::Status | Channel::Update) {
            return CoordinatorReceived::Refused(SealError::Topic);
        }
        match (bytes.split_first(), channel) {
            (Some((&wire::SEALED, _)), _) => self.open(&node, channel, bytes),
            (Some((&wire::HELLO, hello)), Channel::Status) => self.greeted(&node, hello, now_ms, admission),
            (Some((&wire::DEATH, token)), Channel::Status) => self.died(&node, token),
            (Some((&wire::QUESTION, [])), Channel::Status) => self.asked(&node, now_ms),
            (Some((&(wire::HELLO | wire::DEATH | wire::QUESTION | wire::WELCOME | wire::BEACON), _)), _) => {
                CoordinatorReceived::Refused(SealError::Topic)
            }
            _ => CoordinatorReceived::Refused(SealError::NotSealed),
        }
    }

    /// The message sealed: to one node on its topic, or what is for all to each of them. To be `retained` means that nodes
    /// whose session begins later are sent it then. Nothing for nodes without a session: they will greet, and be told.
    pub fn seal(&mut self, topic: &str, message: &[u8], retained: bool) -> Vec<SealedMessage> {
        if topic == topic::manifest(&self.federation) {
            if retained && self.repeats_manifest {
                self.manifest = Some(message.to_vec());
            }
            let federation = &self.federation;
            let to_each = self.peers.iter_mut().filter_map(|(node, peer)| {
                let sealed = peer.seal(Channel::Task, message)?;
                Some(SealedMessage::new(topic::node(federation, node, Channel::Task), sealed))
            });
            return to_each.collect();
        }
        let Some((node, channel)) = topic::parse_node(&self.federation, topic) else { return Vec::new() };
        let Some(peer) = self.peers.get_mut(&node) else { return Vec::new() };
        let sealed = peer.seal(channel, message);
        if retained {
            peer.retain(channel, message.to_vec());
        }
        sealed.map(|bytes| SealedMessage::new(topic.to_owned(), bytes)).into_iter().collect()
    }

    fn open(&mut self, node: &NodeId, channel: Channel, bytes: &[u8]) -> CoordinatorReceived {
        let Some(peer) = self.peers.get_mut(node) else {
            return CoordinatorReceived::Refused(SealError::NoSession);
        };
        let (message, first) = match peer.open(channel, bytes) {
            Ok(opened) => opened,
            Err(error) => return CoordinatorReceived::Refused(error),
        };
        let mut replies = Vec::new();
        if first {
            let manifest = self.manifest.clone().map(|manifest| (Channel::Task, manifest));
            for (channel, message) in manifest.into_iter().chain(peer.retained()) {
                let topic = topic::node(&self.federation, node, channel);
                replies.extend(peer.seal(channel, &message).map(|bytes| SealedMessage::new(topic, bytes)));
            }
        }
        CoordinatorReceived::Message { message, replies }
    }

    /// A node that has seen no beacon: brokers of a cluster retain messages each by itself, and some lose them.
    fn asked(&mut self, node: &NodeId, now_ms: u64) -> CoordinatorReceived {
        let budget = self.peers.get_mut(node).map_or(&mut self.strangers, |peer| &mut peer.hellos);
        if !budget.take(now_ms) {
            return CoordinatorReceived::Refused(SealError::TooMany);
        }
        let topic = topic::node(&self.federation, node, Channel::Task);
        CoordinatorReceived::Reply(SealedMessage::new(topic, self.beacon_bytes()))
    }

    fn greeted(
        &mut self,
        node: &NodeId,
        bytes: &[u8],
        now_ms: u64,
        admission: &mut dyn Admission,
    ) -> CoordinatorReceived {
        let budget = self.peers.get_mut(node).map_or(&mut self.strangers, |peer| &mut peer.hellos);
        if !budget.take(now_ms) {
            return CoordinatorReceived::Refused(SealError::TooMany);
        }
        let names = (&self.federation, node);
        let mut read = ReceivedHello::read(&self.keys, names, bytes, &mut self.entropy);
        if let (Err(_), Some(previous)) = (&read, &self.previous_keys) {
            read = ReceivedHello::read(previous, names, bytes, &mut self.entropy);
        }
        let received = match read {
            Ok(received) if received.hello.serial.as_ref().is_none_or(|it| it.len() <= SERIAL_BYTES_MAX) => {
                received
            }
            _ => return CoordinatorReceived::Refused(SealError::Forged),
        };
        let (stamp, death) = (received.hello.stamp, received.hello.death);
        let introduction = Introduction {
            node,
            key: received.key,
            keeps_key: received.hello.keeps_key,
            code: received.hello.code.as_ref(),
            serial: received.hello.serial.as_deref(),
        };
        let topic = topic::node(&self.federation, node, Channel::Task);
        if let Err(rejection) = admission.admit(&introduction) {
            let error = SealError::Rejected(rejection);
            if !rejection.is_told() {
                return CoordinatorReceived::Refused(error);
            }
            let (answer, _) = received.answer(&Welcome::Rejected(rejection));
            return CoordinatorReceived::Told(error, SealedMessage::new(topic, answer));
        }
        if self.peers.len() >= PEERS_MAX && !self.peers.contains_key(node) {
            return CoordinatorReceived::Refused(SealError::Rejected(Rejection::Full));
        }
        // Another device under the name: nothing of the one before counts any more.
        if self.peers.get(node).is_some_and(|peer| peer.key != received.key) {
            self.peers.remove(node);
        }
        let peer = self.peers.entry(node.clone()).or_insert_with(|| Peer::new(received.key));
        if !peer.is_newer(stamp) {
            return CoordinatorReceived::Refused(SealError::Outdated);
        }
        let coordinator = *self.keys.public().as_bytes();
        let (answer, session) =
            received.answer(&Welcome::Admitted { incarnation: self.incarnation, coordinator });
        peer.offer(session, stamp, death);
        CoordinatorReceived::Reply(SealedMessage::new(topic, answer))
    }

    /// The will, as the status it stands for.
    fn died(&mut self, node: &NodeId, token: &[u8]) -> CoordinatorReceived {
        let Ok(token) = token.try_into() else { return CoordinatorReceived::Refused(SealError::Forged) };
        let Some(peer) = self.peers.get_mut(node) else {
            return CoordinatorReceived::Refused(SealError::NoSession);
        };
        match peer.die(token) {
            Ok(session) => {
                let message = envelope::encode(&Message::Status(Status { session, life: Life::Dead }));
                CoordinatorReceived::Message { message, replies: Vec::new() }
            }
            Err(error) => CoordinatorReceived::Refused(error),
        }
    }
}
