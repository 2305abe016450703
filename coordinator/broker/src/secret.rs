//! Passwords of nodes, derived from one secret and their names.

use std::fmt;
use std::path::{Path, PathBuf};

use evenhand_protocol::identity::{Digest, FederationId, NodeId};
use evenhand_protocol::topic::PREFIX;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// A shorter secret could be guessed from one password.
const CHARACTERS_MIN: usize = 32;

/// The secret that the passwords of all nodes are derived from; its owner can connect as any of them.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// The reason why a file holds no secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// It cannot be read.
    #[error("cannot read {}: {source}; make it with openssl rand -hex 32", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// It could be guessed.
    #[error("{} holds {found} characters; write at least {CHARACTERS_MIN} (openssl rand -hex 32)", path.display())]
    Short {
        /// The file.
        path: PathBuf,
        /// Its length.
        found: usize,
    },
}

impl Secret {
    /// The secret in a file, without white space around it.
    pub fn read(path: &Path) -> Result<Self, SecretError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| SecretError::Read { path: path.to_owned(), source })?;
        let secret = text.trim();
        match secret.chars().count() {
            found if found < CHARACTERS_MIN => Err(SecretError::Short { path: path.to_owned(), found }),
            _ => Ok(Self(secret.to_owned())),
        }
    }

    /// The password of a node. It reveals nothing about the secret or about other passwords.
    pub fn password(&self, federation: &FederationId, node: &NodeId) -> String {
        hmac(self.0.as_bytes(), format!("{PREFIX}/{federation}/node/{node}").as_bytes()).to_string()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// HMAC-SHA-256, RFC 2104.
fn hmac(key: &[u8], message: &[u8]) -> Digest {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(message);
    Digest(mac.finalize().into_bytes().into())
}

/// So many random bytes in hex, for secrets, tokens and passwords.
///
/// # Panics
///
/// If the operating system gives no random numbers.
pub fn random_text(bytes: usize) -> String {
    let mut random = vec![0; bytes];
    rustls::crypto::ring::default_provider()
        .secure_random
        .fill(&mut random)
        .expect("the operating system gives random numbers");
    random.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Cases 1, 2 and 6 of RFC 4231.
    #[test]
    fn the_published_test_vectors_hold() {
        for (key, message, expected) in [
            (
                &[0x0b; 20][..],
                &b"Hi There"[..],
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ] {
            assert_eq!(hmac(key, message).to_string(), expected);
        }
    }

    #[test]
    fn every_node_of_every_federation_has_its_own_password() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        let secret = |text: &str| {
            std::fs::write(&file, text).unwrap();
            Secret::read(&file)
        };
        let one = secret("0123456789abcdef0123456789abcdef\n").unwrap();
        let other = secret("0123456789abcdef0123456789abcdeF").unwrap();
        let (home, town) = (FederationId::new("home").unwrap(), FederationId::new("town").unwrap());
        let (a, b) = (NodeId::new("a").unwrap(), NodeId::new("b").unwrap());
        let password = one.password(&home, &a);
        assert_eq!(
            password, "82a4ca90be629878767472cf7f491cd0bcd1602791a732c09a6e93ca80e7a34c",
            "nodes have stored it"
        );
        for different in [one.password(&home, &b), one.password(&town, &a), other.password(&home, &a)] {
            assert_ne!(password, different);
        }
        assert!(secret("too short").unwrap_err().to_string().contains("holds 9 characters"));
        assert!(!format!("{one:?}").contains("0123"));
    }
}
