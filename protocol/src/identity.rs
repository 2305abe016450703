//! Names of nodes and federations, and digests of content.

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The longest name of a node or a federation, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// The reason why a name is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name has no characters or too many.
    #[error("a name has 1 to {NAME_BYTES_MAX} characters, not {0}")]
    Length(usize),
    /// The name contains a character that has a meaning in MQTT topics or files.
    #[error("character {0:?} is not allowed in a name; use letters, digits, '-', '_' and '.'")]
    Character(char),
}

fn validated(name: &str) -> Result<String, NameError> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(NameError::Length(name.len()));
    }
    match name.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))) {
        Some(c) => Err(NameError::Character(c)),
        None => Ok(name.into()),
    }
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Accepts a name that is safe as one MQTT topic level and as a file name.
            pub fn new(name: &str) -> Result<Self, NameError> {
                validated(name).map(Self)
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(name: String) -> Result<Self, NameError> {
                Self::new(&name)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }

        impl core::str::FromStr for $name {
            type Err = NameError;
            fn from_str(name: &str) -> Result<Self, NameError> {
                Self::new(name)
            }
        }
    };
}

name_type! {
    /// The name of one node, unique in its federation.
    NodeId
}

name_type! {
    /// The name of a federation: one model, one coordinator, many nodes.
    FederationId
}

/// SHA-256 of some bytes: of a model's weights, of a graph, of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of weights: of their little-endian bytes, so that every architecture agrees.
    pub fn of_weights(weights: &[f32]) -> Self {
        let mut hasher = Sha256::new();
        let mut block = [0u8; 4096];
        for chunk in weights.chunks(block.len() / 4) {
            for (bytes, weight) in block.chunks_exact_mut(4).zip(chunk) {
                bytes.copy_from_slice(&weight.to_le_bytes());
            }
            hasher.update(&block[..chunk.len() * 4]);
        }
        Self(hasher.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..6].iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("…")
    }
}
