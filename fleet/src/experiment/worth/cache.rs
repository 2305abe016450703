//! Scores of coalitions on disk: one file a game, one line a coalition, appended as soon as it is trained.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::node_set::NodeSet;
use super::training::{CoalitionScore, JudgedScore};
use super::truth::WORTH;
use crate::experiment::stored_file::StoredFileError;

/// The scores of one game that are known.
#[derive(Debug)]
pub struct ScoreCache {
    path: PathBuf,
    file: File,
    known: BTreeMap<NodeSet, JudgedScore>,
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScoreLine {
    /// The members.
    coalition: String,
    loss: f64,
    score: Option<f64>,
    losses: Vec<f64>,
}

impl ScoreCache {
    /// The scores of the game with this description: everything that a score depends on. A line that was cut short when
    /// the program ended is dropped.
    pub fn open(out: &Path, description: &str) -> Result<Self, StoredFileError> {
        let digest: String =
            Sha256::digest(description)[..10].iter().map(|byte| format!("{byte:02x}")).collect();
        let path = out.join("games").join(format!("{digest}.jsonl"));
        let unwritable = |cause| StoredFileError::Unwritable { path: path.clone(), cause };
        fs::create_dir_all(out.join("games")).map_err(unwritable)?;
        let text = WORTH.text(&path)?.unwrap_or_default();
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let mut known = BTreeMap::new();
        for line in text[..whole].lines() {
            let malformed = |cause| WORTH.malformed(&path, cause);
            let ScoreLine { coalition, loss, score, losses } =
                serde_json::from_str(line).map_err(malformed)?;
            let members = NodeSet::parse(&coalition)
                .ok_or_else(|| malformed(serde::de::Error::custom("a coalition is hexadecimal")))?;
            known.insert(members, JudgedScore { found: CoalitionScore { loss, score }, losses });
        }
        let file =
            OpenOptions::new().create(true).write(true).truncate(false).open(&path).map_err(unwritable)?;
        file.set_len(whole as u64).map_err(unwritable)?;
        drop(file);
        let file = OpenOptions::new().append(true).open(&path).map_err(unwritable)?;
        Ok(Self { path, file, known })
    }

    /// The score of a coalition.
    pub fn get(&self, members: NodeSet) -> Option<&JudgedScore> {
        self.known.get(&members)
    }

    /// Stores the score of a coalition.
    pub fn put(&mut self, members: NodeSet, found: JudgedScore) -> Result<(), StoredFileError> {
        let JudgedScore { found: CoalitionScore { loss, score }, losses } = found.clone();
        let line = ScoreLine { coalition: members.text(), loss, score, losses };
        let unwritable = |cause| StoredFileError::Unwritable { path: self.path.clone(), cause };
        let mut text = serde_json::to_string(&line).map_err(|error| unwritable(error.into()))?;
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(unwritable)?;
        self.known.insert(members, found);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn scores_are_there_again_and_a_line_that_was_cut_short_is_not() {
        let out = tempfile::tempdir().unwrap();
        let (one, other) = (NodeSet::of_bits(5), NodeSet::of_bits(6));
        let found =
            JudgedScore { found: CoalitionScore { loss: 0.5, score: None }, losses: vec![0.25, 0.75] };
        let mut cache = ScoreCache::open(out.path(), "a game").unwrap();
        cache.put(one, found.clone()).unwrap();
        cache.put(other, found.clone()).unwrap();
        let path = cache.path.clone();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text[..text.len() - 5]).unwrap();
        let mut again = ScoreCache::open(out.path(), "a game").unwrap();
        assert_eq!((again.get(one), again.get(other)), (Some(&found), None));
        again.put(other, found.clone()).unwrap();
        assert_eq!(ScoreCache::open(out.path(), "a game").unwrap().get(other), Some(&found));
        assert_eq!(ScoreCache::open(out.path(), "another").unwrap().get(one), None);
    }

    #[test]
    fn a_file_of_something_else_is_refused() {
        let out = tempfile::tempdir().unwrap();
        let path = ScoreCache::open(out.path(), "a game").unwrap().path;
        fs::write(&path, "{\"coalition\": \"x\", \"loss\": 1, \"score\": null, \"losses\": []}\n").unwrap();
        let error = ScoreCache::open(out.path(), "a game").unwrap_err();
        assert!(matches!(error, StoredFileError::Malformed { .. }), "{error}");
        assert!(error.to_string().contains("hexadecimal"), "{error}");
    }
}
