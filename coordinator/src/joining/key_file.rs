//! The coordinator's keys in its state folder: the present one, and the one before while it is still accepted.

use std::io;
use std::path::{Path, PathBuf};

use evenhand_program::atomic;
use evenhand_seal::{Entropy, KeyPair};

/// The file in the state folder. It is not part of the database, which may be given to auditors.
pub const KEY_FILE: &str = "coordinator.keys";

/// The reason why there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{0} holds no keys; restore it from a backup: without it every node must be invited again")]
    Damaged(PathBuf),
}

/// The coordinator's keys.
#[derive(Debug, Clone, PartialEq)]
pub struct CoordinatorKeys {
    /// The key that nodes learn.
    pub current: KeyPair,
    /// The one before, and until when it is accepted, in milliseconds since 1970.
    pub previous: Option<(KeyPair, u64)>,
}

impl CoordinatorKeys {
    /// New keys.
    pub fn generate(entropy: &mut Entropy) -> Self {
        Self { current: KeyPair::generate(entropy), previous: None }
    }

    /// New keys, with the present one accepted until a time.
    pub fn rotated(self, entropy: &mut Entropy, accepted_until_ms: u64) -> Self {
        Self { current: KeyPair::generate(entropy), previous: Some((self.current, accepted_until_ms)) }
    }

    /// The same without a key that is accepted no longer.
    pub fn at(mut self, now_ms: u64) -> Self {
        self.previous.take_if(|(_, until_ms)| now_ms >= *until_ms);
        self
    }

    /// The keys in `folder`; none if there are none.
    pub fn load(folder: &Path) -> Result<Option<Self>, KeyFileError> {
        let path = folder.join(KEY_FILE);
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text).map(Some).ok_or(KeyFileError::Damaged(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(KeyFileError::Io { path, source }),
        }
    }

    /// The keys in `folder`; new ones if there are none.
    pub fn load_or_create(folder: &Path, entropy: &mut Entropy) -> Result<Self, KeyFileError> {
        if let Some(keys) = Self::load(folder)? {
            return Ok(keys);
        }
        let keys = Self::generate(entropy);
        keys.save(folder)?;
        Ok(keys)
    }

    /// Writes the file, for its owner alone.
    pub fn save(&self, folder: &Path) -> Result<(), KeyFileError> {
        let path = folder.join(KEY_FILE);
        let mut text = format!("current {}\n", *self.current.secret_text());
        if let Some((previous, until_ms)) = &self.previous {
            text += &format!("previous {} {until_ms}\n", *previous.secret_text());
        }
        atomic::replace_private(&path, text.as_bytes()).map_err(|source| KeyFileError::Io { path, source })
    }

    fn parse(text: &str) -> Option<Self> {
        let (mut current, mut previous) = (None, None);
        for line in text.lines() {
            match *line.split(' ').collect::<Vec<_>>() {
                ["current", secret] => current = Some(KeyPair::parse_secret(secret).ok()?),
                ["previous", secret, until_ms] => {
                    previous = Some((KeyPair::parse_secret(secret).ok()?, until_ms.parse().ok()?));
                }
                _ => return None,
            }
        }
        Some(Self { current: current?, previous })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn keys_are_kept_for_their_owner_and_the_old_one_for_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let mut entropy = Entropy::from_seed([1; 32]);
        let first = CoordinatorKeys::load_or_create(folder.path(), &mut entropy).unwrap();
        assert_eq!(CoordinatorKeys::load_or_create(folder.path(), &mut entropy).unwrap(), first);
        let file = folder.path().join(KEY_FILE);
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let rotated = first.clone().rotated(&mut entropy, 1_000);
        rotated.save(folder.path()).unwrap();
        let read = CoordinatorKeys::load(folder.path()).unwrap().unwrap();
        assert_eq!(read, rotated);
        assert_eq!(read.clone().at(999).previous.unwrap().0, first.current);
        assert_eq!(read.at(1_000).previous, None);
        std::fs::write(&file, "current A\n").unwrap();
        assert!(matches!(CoordinatorKeys::load(folder.path()), Err(KeyFileError::Damaged(_))));
    }
}
