//! The folder in which a node keeps what it must not forget.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use evenhand_protocol::identity::Digest;
use tokio::task;

use super::NodeError;
use crate::atomic;
use crate::core::{Node, Saved};

/// First bytes of a state file; the number changes with its form.
const MAGIC: &[u8; 8] = b"evhnode1";
const HEADER: usize = MAGIC.len() + 32;

/// A state folder, or none.
#[derive(Debug)]
pub(super) struct State {
    folder: Option<PathBuf>,
    /// A failure is said once until it is over.
    failing: bool,
}

impl State {
    pub(super) fn open(folder: Option<PathBuf>) -> Self {
        Self { folder, failing: false }
    }

    /// The number of this session, and what was saved in an earlier one.
    ///
    /// The number exceeds every earlier one: by the folder if there is one, and by the clock even if it was lost.
    pub(super) async fn begin_session(&self) -> Result<(u64, Option<Saved>), NodeError> {
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        let Some(folder) = self.folder.clone() else { return Ok((now_ms, None)) };
        let begin = move || {
            let saved = load(&folder.join("state"));
            let path = folder.join("session");
            let noted =
                fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0u64);
            let earlier = noted.max(saved.as_ref().map_or(0, Saved::session));
            let session = now_ms.max(earlier.saturating_add(1));
            match atomic::write(&path, format!("{session}\n").as_bytes()) {
                Ok(()) => Ok((session, saved)),
                Err(cause) => Err(NodeError::State { path, cause }),
            }
        };
        task::spawn_blocking(begin)
            .await
            .unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }

    /// Writes the node down; a failure is said, and the node goes on.
    pub(super) async fn save(&mut self, node: &Node) {
        let Some(path) = self.folder.as_ref().map(|folder| folder.join("state")) else { return };
        let saved = node.save();
        let write = move || encode(&saved).and_then(|bytes| atomic::write(&path, &bytes));
        let written = task::spawn_blocking(write).await.unwrap_or_else(|error| Err(io::Error::other(error)));
        match written {
            Ok(()) => self.failing = false,
            Err(error) if !self.failing => {
                self.failing = true;
                tracing::error!(%error, "cannot save; what happens from now on is lost at the next start");
            }
            Err(_) => {}
        }
    }
}

fn encode(saved: &Saved) -> io::Result<Vec<u8>> {
    let body = postcard::to_allocvec(saved).map_err(io::Error::other)?;
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&Digest::of(&body).0);
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

fn decode(bytes: &[u8]) -> Option<Saved> {
    let (magic, rest) = bytes.split_at_checked(MAGIC.len())?;
    let (digest, body) = rest.split_at_checked(HEADER - MAGIC.len())?;
    (magic == MAGIC && digest == Digest::of(body).0).then(|| postcard::from_bytes(body).ok())?
}

/// What was saved; a file that is damaged or of another version is put aside.
fn load(path: &Path) -> Option<Saved> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::error!(%error, path = %path.display(), "cannot read the saved state; beginning anew");
            return None;
        }
    };
    let saved = decode(&bytes);
    if saved.is_none() {
        tracing::error!(path = %path.display(), "the saved state is damaged or of another version; beginning anew");
        let _ = fs::rename(path, path.with_extension("unreadable"));
    }
    saved
}
