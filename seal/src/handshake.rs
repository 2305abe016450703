//! The Noise handshake IK with X25519, ChaCha20-Poly1305 and SHA-256: two messages, mutual proof, forward secrecy.

use evenhand_protocol::identity::{FederationId, NodeId};
use snow::{Builder, HandshakeState};

use crate::entropy::{Entropy, SeededResolver};
use crate::error::SealError;
use crate::keys::{KeyPair, PublicKey};
use crate::session::Session;
use crate::wire::{self, HANDSHAKE_BYTES_MAX, Hello, Welcome};

const PATTERN: &str = "Noise_IK_25519_ChaChaPoly_SHA256";

fn state(
    initiates: bool,
    own: &KeyPair,
    peer: Option<&PublicKey>,
    prologue: &[u8],
    entropy: &mut Entropy,
) -> HandshakeState {
    let params = PATTERN.parse().expect("a pattern that snow knows");
    let mut builder = Builder::with_resolver(params, Box::new(SeededResolver(entropy.bytes())))
        .local_private_key(own.secret())
        .and_then(|builder| builder.prologue(prologue))
        .expect("each is set once");
    if let Some(peer) = peer {
        builder = builder.remote_public_key(peer.as_bytes()).expect("it is set once");
    }
    let built = if initiates { builder.build_initiator() } else { builder.build_responder() };
    built.expect("the pattern's keys are there, and its primitives in the resolver")
}

/// A hello that waits for its welcome.
#[derive(Debug)]
pub(crate) struct PendingHello {
    state: HandshakeState,
}

impl PendingHello {
    /// Says hello to the holder of `to`; the bytes follow the form's first byte.
    pub(crate) fn begin(
        own: &KeyPair,
        to: PublicKey,
        names: (&FederationId, &NodeId),
        hello: &Hello,
        entropy: &mut Entropy,
    ) -> (Self, Vec<u8>) {
        let mut state = state(true, own, Some(&to), &wire::prologue(names.0, names.1), entropy);
        let bytes = written(&mut state, wire::HELLO, &wire::encode(hello));
        (Self { state }, bytes)
    }

    /// The welcome, and the session if it agrees. A forged one changes nothing.
    pub(crate) fn finish(&mut self, bytes: &[u8]) -> Result<(Welcome, Option<Session>), SealError> {
        if bytes.len() > HANDSHAKE_BYTES_MAX {
            return Err(SealError::Forged);
        }
        let mut content = [0; HANDSHAKE_BYTES_MAX];
        let length = self.state.read_message(bytes, &mut content).map_err(|_| SealError::Forged)?;
        let welcome = wire::decode(&content[..length]).ok_or(SealError::Forged)?;
        let agreed = matches!(welcome, Welcome::Admitted { .. });
        let session = agreed.then(|| {
            let (ours, theirs) = self.state.dangerously_get_raw_split();
            Session::new(self.state.get_handshake_hash(), ours, theirs)
        });
        Ok((welcome, session))
    }
}

/// A hello that was understood.
pub(crate) struct ReceivedHello {
    state: HandshakeState,
    pub(crate) key: PublicKey,
    pub(crate) hello: Hello,
}

impl ReceivedHello {
    /// Reads what follows the form's first byte.
    pub(crate) fn read(
        own: &KeyPair,
        names: (&FederationId, &NodeId),
        bytes: &[u8],
        entropy: &mut Entropy,
    ) -> Result<Self, SealError> {
        if bytes.len() > HANDSHAKE_BYTES_MAX {
            return Err(SealError::Forged);
        }
        let mut state = state(false, own, None, &wire::prologue(names.0, names.1), entropy);
        let mut content = [0; HANDSHAKE_BYTES_MAX];
        let length = state.read_message(bytes, &mut content).map_err(|_| SealError::Forged)?;
        let hello = wire::decode(&content[..length]).ok_or(SealError::Forged)?;
        let key = state.get_remote_static().and_then(|key| key.try_into().ok()).ok_or(SealError::Forged)?;
        Ok(Self { state, key: PublicKey::from_bytes(key), hello })
    }

    /// The answer, and the session it begins.
    pub(crate) fn answer(mut self, welcome: &Welcome) -> (Vec<u8>, Session) {
        let bytes = written(&mut self.state, wire::WELCOME, &wire::encode(welcome));
        let (theirs, ours) = self.state.dangerously_get_raw_split();
        (bytes, Session::new(self.state.get_handshake_hash(), ours, theirs))
    }
}

/// The next handshake message with `content`.
fn written(state: &mut HandshakeState, form: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![form; 1 + HANDSHAKE_BYTES_MAX];
    let length = state.write_message(content, &mut bytes[1..]).expect("there is room, and it is our turn");
    bytes.truncate(1 + length);
    bytes
}
