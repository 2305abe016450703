//! Key pairs and their texts.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::base32;
use crate::entropy::Entropy;

/// Bytes of a key.
const KEY_BYTES: usize = 32;

/// The reason why a text is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a key is 52 letters and digits, as evenhand-coordinator key prints them")]
pub struct KeyError;

/// An X25519 public key: who holds its private key is known by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey([u8; KEY_BYTES]);

impl PublicKey {
    /// The key of these bytes.
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base32::encode(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.8}…", base32::encode(&self.0))
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let bytes = base32::decode(text.trim()).ok_or(KeyError)?;
        bytes.try_into().map(Self).map_err(|_| KeyError)
    }
}

impl TryFrom<String> for PublicKey {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, KeyError> {
        text.parse()
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        key.to_string()
    }
}

/// A private key and its public one. The private key leaves the program only as [`KeyPair::secret_text`], for its file.
#[derive(Clone)]
pub struct KeyPair {
    secret: Zeroizing<[u8; KEY_BYTES]>,
    public: PublicKey,
}

impl KeyPair {
    /// A new pair.
    pub fn generate(entropy: &mut Entropy) -> Self {
        Self::from_secret(Zeroizing::new(entropy.bytes()))
    }

    fn from_secret(secret: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        let mut dh = DefaultResolver.resolve_dh(&DHChoice::Curve25519).expect("the resolver has this curve");
        dh.set(&*secret);
        let mut public = [0; KEY_BYTES];
        public.copy_from_slice(dh.pubkey());
        Self { secret, public: PublicKey(public) }
    }

    /// The pair of a text that [`secret_text`](Self::secret_text) wrote.
    pub fn parse_secret(text: &str) -> Result<Self, KeyError> {
        let bytes = Zeroizing::new(base32::decode(text.trim()).ok_or(KeyError)?);
        let secret = <[u8; KEY_BYTES]>::try_from(bytes.as_slice()).map_err(|_| KeyError)?;
        Ok(Self::from_secret(Zeroizing::new(secret)))
    }

    /// The private key as a text for a file that only its owner can read.
    pub fn secret_text(&self) -> Zeroizing<String> {
        Zeroizing::new(base32::encode(&*self.secret))
    }

    /// The public key.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    pub(crate) fn secret(&self) -> &[u8; KEY_BYTES] {
        &self.secret
    }
}

impl PartialEq for KeyPair {
    fn eq(&self, other: &Self) -> bool {
        self.secret.ct_eq(&*other.secret).into()
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyPair({:?})", self.public)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_public_key_is_that_of_rfc_7748() {
        let hex = |text: &str| -> [u8; 32] {
            std::array::from_fn(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
        };
        let alice = hex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
        let public = hex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
        assert_eq!(*KeyPair::from_secret(Zeroizing::new(alice)).public().as_bytes(), public);
    }

    #[test]
    fn texts_are_read_back_and_others_refused() {
        let pair = KeyPair::generate(&mut Entropy::from_seed([7; 32]));
        assert_eq!(KeyPair::parse_secret(&pair.secret_text()).unwrap(), pair);
        assert_eq!(pair.public().to_string().parse(), Ok(pair.public()));
        assert_eq!(pair.public().to_string().len(), 52);
        for wrong in ["", "AAAA", &"A".repeat(53), &"1".repeat(52)] {
            assert_eq!(wrong.parse::<PublicKey>(), Err(KeyError), "{wrong}");
        }
        assert!(!format!("{pair:?}").contains(&**pair.secret_text()));
    }
}
