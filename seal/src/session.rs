//! One session: messages under numbers that are used once.

use chacha20poly1305::aead::AeadInPlace;
use chacha20poly1305::{ChaCha20Poly1305, Key, KeyInit, Nonce, Tag};
use evenhand_protocol::topic::Channel;

use crate::error::SealError;
use crate::receive_window::ReceiveWindow;
use crate::wire;

/// Bytes of the form, the session's tag and the number.
const HEADER_BYTES: usize = 1 + TAG_BYTES + 8;

/// Bytes by which a message names its session.
const TAG_BYTES: usize = 4;

/// Bytes of the authenticator.
const AUTHENTICATOR_BYTES: usize = 16;

/// Bytes that sealing adds to a message.
pub const SEALED_BYTES: usize = HEADER_BYTES + AUTHENTICATOR_BYTES;

/// Keys and numbers of one session.
pub(crate) struct Session {
    tag: [u8; TAG_BYTES],
    send: ChaCha20Poly1305,
    receive: ChaCha20Poly1305,
    next: u64,
    window: ReceiveWindow,
    /// One above the number of the newest status: births and deaths do not overtake each other.
    next_status: u64,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("tag", &self.tag).field("next", &self.next).finish_non_exhaustive()
    }
}

impl Session {
    /// The session of a finished handshake.
    pub(crate) fn new(handshake: &[u8], send: [u8; 32], receive: [u8; 32]) -> Self {
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(&handshake[..TAG_BYTES]);
        Self {
            tag,
            send: ChaCha20Poly1305::new(Key::from_slice(&send)),
            receive: ChaCha20Poly1305::new(Key::from_slice(&receive)),
            next: 0,
            window: ReceiveWindow::default(),
            next_status: 0,
        }
    }

    /// True if sealed bytes name this session.
    pub(crate) fn is_named_by(&self, bytes: &[u8]) -> bool {
        bytes.get(1..1 + TAG_BYTES) == Some(&self.tag)
    }

    /// The message, sealed for `channel`.
    pub(crate) fn seal(&mut self, channel: Channel, message: &[u8]) -> Vec<u8> {
        let number = self.next;
        self.next += 1;
        let mut bytes = Vec::with_capacity(message.len() + SEALED_BYTES);
        bytes.push(wire::SEALED);
        bytes.extend_from_slice(&self.tag);
        bytes.extend_from_slice(&number.to_le_bytes());
        let context = context(&bytes, channel);
        bytes.extend_from_slice(message);
        let tag = self
            .send
            .encrypt_in_place_detached(&nonce(number), &context, &mut bytes[HEADER_BYTES..])
            .expect("no message is as long as 256 GiB");
        bytes.extend_from_slice(&tag);
        bytes
    }

    /// The message in sealed bytes from `channel`.
    pub(crate) fn open(&mut self, channel: Channel, bytes: &[u8]) -> Result<Vec<u8>, SealError> {
        if bytes.len() < SEALED_BYTES || !self.is_named_by(bytes) {
            return Err(SealError::Forged);
        }
        let (header, rest) = bytes.split_at(HEADER_BYTES);
        let (content, tag) = rest.split_at(rest.len() - AUTHENTICATOR_BYTES);
        let mut number = [0; 8];
        number.copy_from_slice(&header[1 + TAG_BYTES..]);
        let number = u64::from_le_bytes(number);
        // Numbers begin at zero: nobody gets there.
        if number == u64::MAX {
            return Err(SealError::Forged);
        }
        if !self.window.is_new(number) || (channel == Channel::Status && number < self.next_status) {
            return Err(SealError::Replayed);
        }
        let mut message = content.to_vec();
        self.receive
            .decrypt_in_place_detached(
                &nonce(number),
                &context(header, channel),
                &mut message,
                Tag::from_slice(tag),
            )
            .map_err(|_| SealError::Forged)?;
        self.window.mark(number);
        if channel == Channel::Status {
            self.next_status = number + 1;
        }
        Ok(message)
    }
}

/// What is authenticated beside the message. Names and direction are bound by the keys, which belong to one handshake.
fn context(header: &[u8], channel: Channel) -> Vec<u8> {
    [header, channel.as_str().as_bytes()].concat()
}

/// As in Noise: four zero bytes, then the number.
fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_le_bytes());
    nonce.into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn pair() -> (Session, Session) {
        (Session::new(&[1; 32], [2; 32], [3; 32]), Session::new(&[1; 32], [3; 32], [2; 32]))
    }

    #[test]
    fn messages_are_opened_once_within_the_window_and_on_their_channel() {
        let (mut ours, mut theirs) = pair();
        let sealed: Vec<Vec<u8>> = (0..100u8).map(|n| ours.seal(Channel::Update, &[n; 50])).collect();
        assert_eq!(sealed[0].len(), 50 + SEALED_BYTES);
        assert_eq!(theirs.open(Channel::Task, &sealed[0]), Err(SealError::Forged));
        assert_eq!(theirs.open(Channel::Update, &sealed[99]).unwrap(), [99; 50]);
        assert_eq!(theirs.open(Channel::Update, &sealed[36]).unwrap(), [36; 50]);
        for at in [99, 36, 35, 0] {
            assert_eq!(theirs.open(Channel::Update, &sealed[at]), Err(SealError::Replayed), "{at}");
        }
        // Not to their sender.
        assert_eq!(ours.open(Channel::Update, &sealed[50]), Err(SealError::Forged));
    }

    #[test]
    fn of_statuses_none_is_older_than_the_newest() {
        let (mut ours, mut theirs) = pair();
        let (born, dead) = (ours.seal(Channel::Status, b"born"), ours.seal(Channel::Status, b"dead"));
        assert!(theirs.open(Channel::Status, &dead).is_ok());
        assert_eq!(theirs.open(Channel::Status, &born), Err(SealError::Replayed));
    }

    #[test]
    fn every_changed_bit_and_every_length_is_refused() {
        let (mut ours, mut theirs) = pair();
        let sealed = ours.seal(Channel::Update, b"a short message");
        for bit in 0..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            // The form's byte is looked at before.
            if bit >= 8 {
                assert_eq!(theirs.open(Channel::Update, &changed), Err(SealError::Forged), "bit {bit}");
            }
        }
        for length in 0..sealed.len() {
            assert_eq!(theirs.open(Channel::Update, &sealed[..length]), Err(SealError::Forged));
        }
        assert!(theirs.open(Channel::Update, &sealed).is_ok());
    }
}
