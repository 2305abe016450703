//! Forms of the messages on the wire.

use evenhand_protocol::identity::{FederationId, NodeId};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};

use crate::admission::Rejection;
use crate::invitation::OneTimeCode;
use crate::keys::PublicKey;

/// The first byte of each form; none begins a message in clear.
pub(crate) const BEACON: u8 = 0xe1;
pub(crate) const HELLO: u8 = 0xe2;
pub(crate) const WELCOME: u8 = 0xe3;
pub(crate) const SEALED: u8 = 0xe4;
pub(crate) const DEATH: u8 = 0xe5;
pub(crate) const QUESTION: u8 = 0xe6;

/// The longest serial number of a meter.
pub(crate) const SERIAL_BYTES_MAX: usize = 64;

/// The longest handshake message that is looked at.
pub(crate) const HANDSHAKE_BYTES_MAX: usize = 512;

/// Bytes for a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedMessage {
    /// The topic.
    pub topic: String,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// True if the broker retains them: for the beacon alone.
    pub retain: bool,
}

impl SealedMessage {
    pub(crate) fn new(topic: String, bytes: Vec<u8>) -> Self {
        Self { topic, bytes, retain: false }
    }
}

/// What both sides must agree on before anything is said.
pub(crate) fn prologue(federation: &FederationId, node: &NodeId) -> Vec<u8> {
    format!("evenhand seal 1/{federation}/{node}").into_bytes()
}

/// One start of a coordinator: nodes greet each.
pub(crate) type Incarnation = [u8; 8];

/// The order of a node's handshakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct HelloStamp {
    /// Grows with every start of the node.
    pub(crate) session: u64,
    /// Grows with every hello of the session.
    pub(crate) hello: u32,
}

/// Content of a hello.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) stamp: HelloStamp,
    /// Digest of what the will says.
    pub(crate) death: [u8; 32],
    /// True if the node has the same key after its next start.
    pub(crate) keeps_key: bool,
    pub(crate) code: Option<OneTimeCode>,
    pub(crate) serial: Option<String>,
}

/// Content of a welcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Welcome {
    Admitted { incarnation: Incarnation, coordinator: [u8; 32] },
    Rejected(Rejection),
}

/// Content of the beacon.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Beacon {
    pub(crate) incarnation: Incarnation,
    pub(crate) key: [u8; 32],
}

impl Beacon {
    pub(crate) fn key(&self) -> PublicKey {
        PublicKey::from_bytes(self.key)
    }
}

pub(crate) fn encode(content: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(content).expect("handshakes hold nothing that postcard cannot write")
}

/// The content of `bytes`, if it is that and nothing else.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((content, [])) => Some(content),
        _ => None,
    }
}

/// Bytes of what a will says.
pub(crate) const DEATH_BYTES: usize = 16;

/// The digest by which a will is recognised.
pub(crate) fn death_digest(token: &[u8; DEATH_BYTES]) -> [u8; 32] {
    Sha256::digest(token).into()
}
