//! What is wrong with a configuration, said so that it can be put right.

use std::path::PathBuf;

use evenhand_link::{BrokerError, TlsError};

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// It is no TOML, or has unknown or missing keys.
    #[error("{message}{}", nearest.as_ref().map(|name| format!("\ndid you mean `{name}`?")).unwrap_or_default())]
    Syntax {
        /// What the parser says, with the line.
        message: String,
        /// The known name that resembles the unknown one.
        nearest: Option<String>,
    },
    /// The source is one that this program was built without.
    #[error(
        "this evenhand-node was built without the source {kind:?}; build it with --features {kind}, or choose one of: {}",
        built()
    )]
    Feature {
        /// The source.
        kind: &'static str,
    },
    /// A value makes no sense.
    #[error("{0}")]
    Value(String),
    /// A variable of the environment is missing.
    #[error("the environment has no variable {0:?}; set it, or name a file instead")]
    Environment(String),
    /// The broker's address is none.
    #[error("url of a broker: {0}")]
    Broker(#[from] BrokerError),
    /// The certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

fn built() -> String {
    super::SourceSection::kinds().collect::<Vec<_>>().join(", ")
}

impl ConfigError {
    pub(super) fn syntax(error: &toml::de::Error) -> Self {
        let message = error.to_string().trim_end().to_owned();
        // serde says: unknown field `a`, expected one of `b`, `c`
        let mut names = error.message().split('`').skip(1).step_by(2);
        let unknown = names.next().filter(|_| error.message().starts_with("unknown "));
        let nearest = unknown.and_then(|unknown| {
            names.map(|name| (distance(unknown, name), name)).filter(|(d, name)| *d <= name.len() / 2).min()
        });
        Self::Syntax { message, nearest: nearest.map(|(_, name)| name.to_owned()) }
    }
}

/// Letters to insert, remove, replace or swap to get from `a` to `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in
            [("", "", 0), ("url", "ulr", 1), ("noise", "nose", 1), ("kitten", "sitting", 3), ("ab", "", 2)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
