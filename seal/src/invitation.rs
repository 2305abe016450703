//! Invitations: all that a device needs to join, once, in one line.

use std::fmt;
use std::str::FromStr;

use evenhand_protocol::identity::{FederationId, NodeId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

use crate::base32;
use crate::entropy::Entropy;
use crate::keys::PublicKey;

/// The first letters of an invitation; the number changes with its form.
const PREFIX: &str = "EVENHAND1:";

/// Bytes that detect a mistyped invitation.
const CHECK_BYTES: usize = 4;

/// The longest text that is looked at.
const TEXT_BYTES_MAX: usize = 4096;

/// A secret that admits one device, once.
#[derive(Clone, Serialize, Deserialize)]
pub struct OneTimeCode([u8; 16]);

impl OneTimeCode {
    /// A new code.
    pub fn generate(entropy: &mut Entropy) -> Self {
        Self(entropy.bytes())
    }

    /// What is stored of it: 128 random bits need no slow hash.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.0).into()
    }

    /// The text of a file.
    pub fn to_text(&self) -> String {
        base32::encode(&self.0)
    }

    /// The code of a text that [`to_text`](Self::to_text) wrote.
    pub fn parse(text: &str) -> Option<Self> {
        base32::decode(text.trim())?.try_into().ok().map(Self)
    }
}

impl PartialEq for OneTimeCode {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for OneTimeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OneTimeCode(..)")
    }
}

/// The reason why a text is no invitation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvitationError {
    /// Something else.
    #[error("an invitation begins with {PREFIX}; copy the whole line, or name its file")]
    Form,
    /// Letters are missing or wrong.
    #[error("the invitation is incomplete or mistyped; copy the whole line")]
    Damaged,
    /// A newer form.
    #[error("the invitation was written by another version; update this program")]
    Version,
}

/// All that a device needs to join.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Invitation {
    /// The broker's address.
    pub broker: String,
    /// The federation.
    pub federation: FederationId,
    /// The node's name.
    pub node: NodeId,
    /// The coordinator's key.
    #[serde(with = "key_bytes")]
    pub coordinator: PublicKey,
    /// The code.
    pub code: OneTimeCode,
    /// The serial number of the meter it is for.
    pub serial: Option<String>,
    /// The node's password on the broker, where this asks for one.
    pub password: Option<String>,
}

impl fmt::Display for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = postcard::to_allocvec(self).expect("plain data always encodes");
        bytes.extend_from_slice(&check(&bytes));
        write!(f, "{PREFIX}{}", base32::encode(&bytes))
    }
}

impl FromStr for Invitation {
    type Err = InvitationError;

    fn from_str(text: &str) -> Result<Self, InvitationError> {
        let text = text.trim();
        if text.len() > TEXT_BYTES_MAX || !text.is_ascii() || text.len() < PREFIX.len() {
            return Err(InvitationError::Form);
        }
        let (prefix, rest) = text.split_at(PREFIX.len());
        if !prefix.eq_ignore_ascii_case(PREFIX) {
            let newer = prefix.to_ascii_uppercase().starts_with("EVENHAND") && prefix.ends_with(':');
            return Err(if newer { InvitationError::Version } else { InvitationError::Form });
        }
        let bytes = base32::decode(rest).ok_or(InvitationError::Damaged)?;
        let split = bytes.len().checked_sub(CHECK_BYTES).ok_or(InvitationError::Damaged)?;
        let (content, sum) = bytes.split_at(split);
        if check(content) != *sum {
            return Err(InvitationError::Damaged);
        }
        crate::wire::decode(content).ok_or(InvitationError::Version)
    }
}

fn check(bytes: &[u8]) -> [u8; CHECK_BYTES] {
    let digest = Sha256::digest(bytes);
    std::array::from_fn(|at| digest[at])
}

mod key_bytes {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::keys::PublicKey;

    pub(super) fn serialize<S: Serializer>(key: &PublicKey, serializer: S) -> Result<S::Ok, S::Error> {
        key.as_bytes().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PublicKey, D::Error> {
        <[u8; 32]>::deserialize(deserializer).map(PublicKey::from_bytes)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::keys::KeyPair;

    fn invitation() -> Invitation {
        let mut entropy = Entropy::from_seed([4; 32]);
        Invitation {
            broker: "mqtts://broker.example".into(),
            federation: FederationId::new("town").unwrap(),
            node: NodeId::new("meter-7").unwrap(),
            coordinator: KeyPair::generate(&mut entropy).public(),
            code: OneTimeCode::generate(&mut entropy),
            serial: Some("1EBZ0101234567".into()),
            password: None,
        }
    }

    #[test]
    fn a_line_is_read_back_in_either_case() {
        let text = invitation().to_string();
        assert!(text.len() < 200, "{text}");
        assert_eq!(text.parse(), Ok(invitation()));
        assert_eq!(format!("  {}\n", text.to_lowercase()).parse(), Ok(invitation()));
    }

    #[test]
    fn mistyped_invitations_are_refused_with_a_sentence() {
        let text = invitation().to_string();
        for at in PREFIX.len()..text.len() {
            let mut typed = text.clone().into_bytes();
            typed[at] = if typed[at] == b'A' { b'B' } else { b'A' };
            let typed = String::from_utf8(typed).unwrap();
            assert_eq!(typed.parse::<Invitation>(), Err(InvitationError::Damaged));
        }
        assert_eq!(text[..text.len() - 9].parse::<Invitation>(), Err(InvitationError::Damaged));
        assert_eq!("hello".parse::<Invitation>(), Err(InvitationError::Form));
        assert_eq!("é".repeat(40).parse::<Invitation>(), Err(InvitationError::Form));
        assert_eq!(text.replace("D1:", "D2:").parse::<Invitation>(), Err(InvitationError::Version));
    }

    #[test]
    fn codes_are_not_shown() {
        let code = invitation().code;
        assert_eq!(OneTimeCode::parse(&code.to_text()), Some(code.clone()));
        assert!(!format!("{:?}", invitation()).contains(&code.to_text()));
    }
}
