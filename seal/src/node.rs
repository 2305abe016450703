//! A node's session with its coordinator.

use evenhand_protocol::identity::{FederationId, NodeId};
use evenhand_protocol::topic::{self, Channel};

use crate::admission::Rejection;
use crate::entropy::Entropy;
use crate::error::SealError;
use crate::handshake::PendingHello;
use crate::invitation::OneTimeCode;
use crate::keys::{KeyPair, PublicKey};
use crate::session::Session;
use crate::wire::{self, Beacon, DEATH_BYTES, Hello, HelloStamp, Incarnation, SealedMessage, Welcome};

/// The wait for a welcome before the node greets again; it doubles each time.
const RETRY_MS: u64 = 5_000;

/// The longest wait.
const RETRY_MS_MAX: u64 = 60_000;

/// The wait for the retained beacon before a node that knows no coordinator asks for one.
const QUESTION_AFTER_MS: u64 = 1_000;

/// The shortest time between two hellos, whatever beacons say; it doubles with every beacon that was false.
const HELLO_EVERY_MS: u64 = 1_000;

/// Who a node is, and whom it trusts.
#[derive(Debug, Clone)]
pub struct NodeIdentity {
    federation: FederationId,
    node: NodeId,
    keys: KeyPair,
    coordinator: Option<PublicKey>,
    keeps_key: bool,
    code: Option<OneTimeCode>,
    serial: Option<String>,
}

impl NodeIdentity {
    /// A node that trusts the first coordinator it sees.
    pub fn new(federation: FederationId, node: NodeId, keys: KeyPair) -> Self {
        Self { federation, node, keys, coordinator: None, keeps_key: true, code: None, serial: None }
    }

    /// The same, trusting this coordinator alone.
    pub fn knowing(self, coordinator: PublicKey) -> Self {
        Self { coordinator: Some(coordinator), ..self }
    }

    /// The same with keys that are lost at its end.
    pub fn without_lasting_key(self) -> Self {
        Self { keeps_key: false, ..self }
    }

    /// The same with the code of an invitation.
    pub fn invited_by(self, code: OneTimeCode) -> Self {
        Self { code: Some(code), ..self }
    }

    /// The same with the serial number of its meter.
    pub fn with_serial(self, serial: String) -> Self {
        Self { serial: Some(serial), ..self }
    }
}

/// What received bytes were.
#[derive(Debug, PartialEq)]
pub enum NodeReceived {
    /// A message of the coordinator.
    Message(Vec<u8>),
    /// The session has begun.
    Secured {
        /// The key of the coordinator, if the node did not know it: it is to be saved.
        learnt: Option<PublicKey>,
    },
    /// A beacon that makes the node greet.
    Reply(SealedMessage),
    /// Nothing new.
    Nothing,
    /// Nothing to be believed.
    Refused(SealError),
    /// The coordinator does not admit the node.
    Rejected(Rejection),
}

/// A node's session with its coordinator.
#[derive(Debug)]
pub struct NodeSeal {
    identity: NodeIdentity,
    entropy: Entropy,
    stamp: HelloStamp,
    /// What the will of the present connection says.
    death: [u8; DEATH_BYTES],
    connected: bool,
    /// The key of the beacon, greeted by a node that knows no other; trusted once its welcome proves it.
    candidate: Option<PublicKey>,
    pending: Option<PendingHello>,
    /// Of the coordinator that the session is with.
    incarnation: Option<Incarnation>,
    secured: bool,
    current: Option<Session>,
    /// What was sent before the node greeted again may still arrive.
    previous: Option<Session>,
    greeted_ms: Option<u64>,
    due_ms: Option<u64>,
    wait_ms: u64,
    hello_every_ms: u64,
}

impl NodeSeal {
    /// A node whose start has this number, which grows.
    pub fn new(identity: NodeIdentity, session: u64, mut entropy: Entropy) -> Self {
        Self {
            identity,
            death: entropy.bytes(),
            entropy,
            stamp: HelloStamp { session, hello: 0 },
            connected: false,
            candidate: None,
            pending: None,
            incarnation: None,
            secured: false,
            current: None,
            previous: None,
            greeted_ms: None,
            due_ms: None,
            wait_ms: RETRY_MS,
            hello_every_ms: HELLO_EVERY_MS,
        }
    }

    /// The will of the next connection.
    pub fn will(&mut self) -> SealedMessage {
        self.death = self.entropy.bytes();
        let bytes = [&[wire::DEATH][..], &self.death].concat();
        SealedMessage::new(self.topic(Channel::Status), bytes)
    }

    /// The broker accepted the connection: what to say first, if the coordinator is known.
    pub fn connected(&mut self, now_ms: u64) -> Vec<SealedMessage> {
        (self.connected, self.secured, self.wait_ms) = (true, false, RETRY_MS);
        if self.identity.coordinator.or(self.candidate).is_none() {
            self.due_ms = Some(now_ms.saturating_add(QUESTION_AFTER_MS));
        }
        self.greet(now_ms).into_iter().collect()
    }

    /// The connection is lost.
    pub fn disconnected(&mut self) {
        (self.connected, self.secured, self.pending, self.due_ms) = (false, false, None, None);
    }

    /// A hello that is to be said again, or the question for a coordinator. To be called about once a second.
    pub fn due(&mut self, now_ms: u64) -> Option<SealedMessage> {
        let due = self.connected && self.due_ms.is_some_and(|due_ms| now_ms >= due_ms);
        due.then(|| self.greet(now_ms).unwrap_or_else(|| self.ask(now_ms)))
    }

    /// The message sealed; none without a session.
    pub fn seal(&mut self, topic: &str, message: &[u8]) -> Option<SealedMessage> {
        let (node, channel) = topic::parse_node(&self.identity.federation, topic)?;
        let session = self.current.as_mut().filter(|_| self.secured && node == self.identity.node)?;
        Some(SealedMessage::new(topic.to_owned(), session.seal(channel, message)))
    }

    /// Looks at received bytes.
    pub fn receive(&mut self, topic: &str, bytes: &[u8], now_ms: u64) -> NodeReceived {
        let Some((form, rest)) = bytes.split_first() else {
            return NodeReceived::Refused(SealError::NotSealed);
        };
        if topic == topic::manifest(&self.identity.federation) {
            return match wire::decode(rest).filter(|_| *form == wire::BEACON) {
                Some(beacon) => self.beacon(&beacon, now_ms),
                None => NodeReceived::Refused(SealError::NotSealed),
            };
        }
        let channel = match topic::parse_node(&self.identity.federation, topic) {
            Some((node, channel)) if node == self.identity.node => channel,
            _ => return NodeReceived::Refused(SealError::Topic),
        };
        match (*form, channel) {
            (wire::SEALED, Channel::Task | Channel::Account) => self.open(channel, bytes),
            (wire::WELCOME, Channel::Task) => self.welcomed(rest),
            (wire::BEACON, Channel::Task) => match wire::decode(rest) {
                Some(beacon) => self.beacon(&beacon, now_ms),
                None => NodeReceived::Refused(SealError::NotSealed),
            },
            (wire::SEALED | wire::WELCOME | wire::HELLO | wire::DEATH | wire::BEACON | wire::QUESTION, _) => {
                NodeReceived::Refused(SealError::Topic)
            }
            _ => NodeReceived::Refused(SealError::NotSealed),
        }
    }

    fn topic(&self, channel: Channel) -> String {
        topic::node(&self.identity.federation, &self.identity.node, channel)
    }

    fn ask(&mut self, now_ms: u64) -> SealedMessage {
        self.due_ms = Some(now_ms.saturating_add(self.wait_ms));
        self.wait_ms = self.wait_ms.saturating_mul(2).min(RETRY_MS_MAX);
        SealedMessage::new(self.topic(Channel::Status), vec![wire::QUESTION])
    }

    fn greet(&mut self, now_ms: u64) -> Option<SealedMessage> {
        let to = self.identity.coordinator.or(self.candidate)?;
        self.stamp.hello = self.stamp.hello.saturating_add(1);
        let hello = Hello {
            stamp: self.stamp,
            death: wire::death_digest(&self.death),
            keeps_key: self.identity.keeps_key,
            code: self.identity.code.clone(),
            serial: self.identity.serial.clone(),
        };
        let names = (&self.identity.federation, &self.identity.node);
        let (pending, bytes) = PendingHello::begin(&self.identity.keys, to, names, &hello, &mut self.entropy);
        self.pending = Some(pending);
        (self.greeted_ms, self.due_ms) = (Some(now_ms), Some(now_ms.saturating_add(self.wait_ms)));
        self.wait_ms = self.wait_ms.saturating_mul(2).min(RETRY_MS_MAX);
        Some(SealedMessage::new(self.topic(Channel::Status), bytes))
    }

    /// A beacon is believed in nothing but that it may be worth greeting, and in the key only by who knows none.
    fn beacon(&mut self, beacon: &Beacon, now_ms: u64) -> NodeReceived {
        if !self.connected || (self.secured && self.incarnation == Some(beacon.incarnation)) {
            return NodeReceived::Nothing;
        }
        self.candidate = Some(beacon.key());
        let soon_ms = self.greeted_ms.map_or(0, |greeted_ms| greeted_ms.saturating_add(self.hello_every_ms));
        let greeting = match now_ms >= soon_ms {
            true => self.greet(now_ms),
            false => {
                self.due_ms = Some(self.due_ms.map_or(soon_ms, |due_ms| due_ms.min(soon_ms)));
                None
            }
        };
        greeting.map_or(NodeReceived::Nothing, NodeReceived::Reply)
    }

    fn welcomed(&mut self, bytes: &[u8]) -> NodeReceived {
        let Some(mut pending) = self.pending.take() else {
            return NodeReceived::Refused(SealError::NoSession);
        };
        let (welcome, session) = match pending.finish(bytes) {
            Ok(finished) => finished,
            Err(error) => {
                // A forged welcome must not end the wait for the real one.
                self.pending = Some(pending);
                return NodeReceived::Refused(error);
            }
        };
        match (welcome, session) {
            (Welcome::Admitted { incarnation, coordinator }, Some(session)) => {
                (self.due_ms, self.wait_ms) = (None, RETRY_MS);
                if self.secured && self.incarnation == Some(incarnation) {
                    // The beacon was false: the session goes on, or anybody could have it begun again and again.
                    self.hello_every_ms = self.hello_every_ms.saturating_mul(2).min(RETRY_MS_MAX);
                    return NodeReceived::Nothing;
                }
                self.hello_every_ms = HELLO_EVERY_MS;
                let key = PublicKey::from_bytes(coordinator);
                let learnt = (self.identity.coordinator != Some(key)).then_some(key);
                self.identity.coordinator = Some(key);
                self.identity.code = None;
                (self.incarnation, self.secured) = (Some(incarnation), true);
                self.previous = self.current.replace(session);
                NodeReceived::Secured { learnt }
            }
            (Welcome::Rejected(rejection), _) => NodeReceived::Rejected(rejection),
            (Welcome::Admitted { .. }, None) => NodeReceived::Refused(SealError::Forged),
        }
    }

    fn open(&mut self, channel: Channel, bytes: &[u8]) -> NodeReceived {
        for session in [&mut self.current, &mut self.previous].into_iter().flatten() {
            if session.is_named_by(bytes) {
                return match session.open(channel, bytes) {
                    Ok(message) => NodeReceived::Message(message),
                    Err(error) => NodeReceived::Refused(error),
                };
            }
        }
        NodeReceived::Refused(SealError::NoSession)
    }
}
