//! Concerns about files that hold a password, a token or a secret.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Read access of users outside the file's group, and write access of anybody but the owner.
const EXPOSED: u32 = 0o027;

/// A text with fewer bits could be guessed.
const BITS_MIN: f64 = 64.0;

/// What is wrong with a file that holds the secret `key` of the configuration: who else can read it, and whether it could be
/// guessed. A file that cannot be read is the concern of who reads it.
pub fn concerns(key: &str, path: &Path) -> Vec<String> {
    let mut concerns = exposure(key, path).into_iter().collect::<Vec<_>>();
    if let Ok(text) = fs::read_to_string(path)
        && bits(text.trim()) < BITS_MIN
    {
        concerns.push(format!(
            "{key}: {} holds a text that could be guessed; make one with openssl rand -hex 32",
            path.display()
        ));
    }
    concerns
}

/// A concern if others can read or change the file, such as a private key.
pub fn exposure(key: &str, path: &Path) -> Option<String> {
    let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & EXPOSED != 0).then(|| {
        format!("{key}: {} has mode {mode:04o}, so that other users can use it; chmod 0600", path.display())
    })
}

/// Length times the entropy of the characters: an upper bound on what a text without a pattern holds.
fn bits(text: &str) -> f64 {
    let mut counts = BTreeMap::<char, f64>::new();
    text.chars().for_each(|character| *counts.entry(character).or_default() += 1.0);
    let length: f64 = counts.values().sum();
    counts.values().map(|count| count * (length / count).log2()).sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_entropy_of_known_texts() {
        for (text, expected) in [("", 0.0), ("aaaaaaaa", 0.0), ("abababab", 8.0), ("0123456789abcdef", 64.0)]
        {
            assert!((bits(text) - expected).abs() < 1e-9, "{text}: {}", bits(text));
        }
    }

    #[test]
    fn loose_and_guessable_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let found = |text: &str, mode: u32| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            concerns("broker.secret_file", &path).join("\n")
        };
        let good = "8f3c1a90d2e4b67588aa01fe23cd459b7716e0d4c2b3a4958f60e1d7c3b2a190\n";
        assert_eq!(found(good, 0o600), "");
        assert_eq!(found(good, 0o640), "", "a group of its own, as the installation makes it");
        for loose in [0o644, 0o604, 0o660, 0o620] {
            let said = found(good, loose);
            assert!(said.starts_with("broker.secret_file: ") && said.contains("chmod 0600"), "{said}");
        }
        for weak in ["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "hunter2", ""] {
            let said = found(weak, 0o600);
            assert!(said.contains("could be guessed") && !said.contains("mode"), "{said}");
        }
        fs::remove_file(&path).unwrap();
        assert!(concerns("broker.secret_file", &path).is_empty());
    }
}
