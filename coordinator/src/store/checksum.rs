//! Checksums of stored bytes: redb checks its pages only after a crash.

use evenhand_protocol::identity::Digest;

/// The bytes with their digest at the end.
pub(super) fn append(mut bytes: Vec<u8>) -> Vec<u8> {
    let digest = Digest::of(&bytes);
    bytes.extend_from_slice(&digest.0);
    bytes
}

/// The bytes without their digest; `None` if it is wrong.
pub(super) fn verified(bytes: &[u8]) -> Option<&[u8]> {
    let (bytes, digest) = bytes.split_last_chunk::<32>()?;
    (Digest::of(bytes).0 == *digest).then_some(bytes)
}
