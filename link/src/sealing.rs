//! Protection of messages on their way: between the bytes of a message and its chunks.

use std::fmt::Debug;
use std::sync::Mutex;

use evenhand_seal::{
    Admission, CoordinatorReceived, CoordinatorSeal, NodeReceived, NodeSeal, PublicKey, Rejection, SealError,
    SealedMessage,
};

use crate::state::locked;

/// One side of sealed messages. Time is any growing number of milliseconds.
pub trait Sealing: Debug + Send + Sync {
    /// The will of the next connection.
    fn will(&self) -> Option<SealedMessage>;

    /// What to publish once the broker has accepted the connection.
    fn connected(&self, now_ms: u64) -> Vec<SealedMessage>;

    /// The connection is lost.
    fn disconnected(&self);

    /// What to publish now; called about once a second.
    fn due(&self, now_ms: u64) -> Option<SealedMessage>;

    /// A message as it is to be published: to nobody, to one, or to each.
    fn seal(&self, topic: &str, message: &[u8], retain: bool) -> Vec<SealedMessage>;

    /// What received bytes are.
    fn open(&self, topic: &str, bytes: &[u8], now_ms: u64) -> OpenedBytes;
}

/// What received bytes are.
#[derive(Debug, Default)]
pub struct OpenedBytes {
    /// What to publish.
    pub replies: Vec<SealedMessage>,
    /// What follows from them, if anything.
    pub outcome: Option<Result<SealEvent, SealError>>,
}

/// What follows from received bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SealEvent {
    /// A message.
    Message(Vec<u8>),
    /// A session with the coordinator has begun.
    Secured {
        /// The coordinator's key, if it was not known.
        learnt: Option<PublicKey>,
    },
    /// The coordinator does not admit this node.
    Rejected(Rejection),
}

impl From<SealedMessage> for OpenedBytes {
    fn from(reply: SealedMessage) -> Self {
        Self { replies: vec![reply], outcome: None }
    }
}

impl From<Result<SealEvent, SealError>> for OpenedBytes {
    fn from(outcome: Result<SealEvent, SealError>) -> Self {
        Self { replies: Vec::new(), outcome: Some(outcome) }
    }
}

/// A node's side.
#[derive(Debug)]
pub struct NodeSealing(Mutex<NodeSeal>);

impl NodeSealing {
    /// The side of this node.
    pub fn new(seal: NodeSeal) -> Self {
        Self(Mutex::new(seal))
    }
}

impl Sealing for NodeSealing {
    fn will(&self) -> Option<SealedMessage> {
        Some(locked(&self.0).will())
    }

    fn connected(&self, now_ms: u64) -> Vec<SealedMessage> {
        locked(&self.0).connected(now_ms)
    }

    fn disconnected(&self) {
        locked(&self.0).disconnected();
    }

    fn due(&self, now_ms: u64) -> Option<SealedMessage> {
        locked(&self.0).due(now_ms)
    }

    fn seal(&self, topic: &str, message: &[u8], _retain: bool) -> Vec<SealedMessage> {
        locked(&self.0).seal(topic, message).into_iter().collect()
    }

    fn open(&self, topic: &str, bytes: &[u8], now_ms: u64) -> OpenedBytes {
        match locked(&self.0).receive(topic, bytes, now_ms) {
            NodeReceived::Message(message) => Ok(SealEvent::Message(message)).into(),
            NodeReceived::Secured { learnt } => Ok(SealEvent::Secured { learnt }).into(),
            NodeReceived::Rejected(rejection) => Ok(SealEvent::Rejected(rejection)).into(),
            NodeReceived::Reply(hello) => hello.into(),
            NodeReceived::Nothing => OpenedBytes::default(),
            NodeReceived::Refused(error) => Err(error).into(),
        }
    }
}

/// The coordinator's side, with the owner of names and keys.
#[derive(Debug)]
pub struct CoordinatorSealing<A>(Mutex<(CoordinatorSeal, A)>);

impl<A: Admission> CoordinatorSealing<A> {
    /// The side of a coordinator.
    pub fn new(seal: CoordinatorSeal, admission: A) -> Self {
        Self(Mutex::new((seal, admission)))
    }

    /// Changes sessions and admission between two messages.
    pub fn with<T>(&self, change: impl FnOnce(&mut CoordinatorSeal, &mut A) -> T) -> T {
        let (seal, admission) = &mut *locked(&self.0);
        change(seal, admission)
    }
}

impl<A: Admission + Debug + Send> Sealing for CoordinatorSealing<A> {
    /// A coordinator's end is known by its silence.
    fn will(&self) -> Option<SealedMessage> {
        None
    }

    fn connected(&self, _now_ms: u64) -> Vec<SealedMessage> {
        vec![self.with(|seal, _| seal.beacon())]
    }

    fn disconnected(&self) {}

    fn due(&self, _now_ms: u64) -> Option<SealedMessage> {
        None
    }

    fn seal(&self, topic: &str, message: &[u8], retain: bool) -> Vec<SealedMessage> {
        self.with(|seal, _| seal.seal(topic, message, retain))
    }

    fn open(&self, topic: &str, bytes: &[u8], now_ms: u64) -> OpenedBytes {
        match self.with(|seal, admission| seal.receive(topic, bytes, now_ms, admission)) {
            CoordinatorReceived::Message { message, replies } => {
                OpenedBytes { replies, outcome: Some(Ok(SealEvent::Message(message))) }
            }
            CoordinatorReceived::Reply(welcome) => welcome.into(),
            CoordinatorReceived::Refused(error) => Err(error).into(),
            CoordinatorReceived::Told(error, told) => {
                OpenedBytes { replies: vec![told], outcome: Some(Err(error)) }
            }
        }
    }
}
