//! Persistence of a node in its state folder.
//!
//! `state` is the whole node, replaced atomically; `journal` holds the data that arrived since then, so that each reading
//! costs a few bytes instead of the whole; `session` is the number of the last start.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use evenhand_protocol::identity::Digest;
use tokio::task;

use super::NodeError;
use super::disk::Disk;
use super::identity_files;
use super::status;
use crate::core::{JournalEntry, Node, NodeSettings, SavedNode};
use crate::journal;

const STATE: &str = "state";
const JOURNAL: &str = "journal";
const SESSION: &str = "session";
/// What others must not read in the folder: readings, forecasts and the model.
pub(super) const PRIVATE: [&str; 10] = [
    STATE,
    "state.unreadable",
    JOURNAL,
    SESSION,
    status::FILE,
    "models",
    identity_files::KEY,
    identity_files::COORDINATOR,
    identity_files::INVITATION,
    identity_files::PASSWORD,
];

/// First bytes of a state file; the number changes with the format.
const FORM: &[u8; 8] = b"evhnode9";
const DIGEST_BYTES: usize = 32;
/// From this size on the journal is replaced by a new state.
const JOURNAL_BYTES_MAX: u64 = 256 * 1024;
/// Age from which the journal is replaced as well.
const JOURNAL_AGE_MAX: Duration = Duration::from_secs(3600);
/// Interval of the journal's syncs, and thus the loss in a power cut; a killed process loses nothing. Memory cards wear out.
const SYNC_EVERY: Duration = Duration::from_secs(60);

/// The saved state and journal of a node, or none.
#[derive(Debug)]
pub(super) struct StateStore {
    disk: Option<Arc<dyn Disk>>,
    journal_bytes: u64,
    /// State and journal together are the node; if not, it must be saved.
    complete: bool,
    saved_at: Instant,
    synced_at: Option<Instant>,
    /// A failure was logged and has not ended.
    failing: bool,
}

impl StateStore {
    /// The saved node in a new session that begins at `now_ms`; a new node if none was saved.
    pub(super) async fn open(
        disk: Option<Arc<dyn Disk>>,
        settings: NodeSettings,
        now_ms: i64,
    ) -> Result<(Self, Node), NodeError> {
        let mut state = Self {
            disk,
            journal_bytes: 0,
            complete: true,
            saved_at: Instant::now(),
            synced_at: None,
            failing: false,
        };
        let begin = move || {
            let node = state.restore(settings, now_ms)?;
            Ok((state, node))
        };
        task::spawn_blocking(begin)
            .await
            .unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }

    fn restore(&mut self, settings: NodeSettings, now_ms: i64) -> Result<Node, NodeError> {
        let now = u64::try_from(now_ms).unwrap_or(0);
        let Some(disk) = self.disk.clone() else { return Ok(Node::new(settings, now)) };
        let saved = self.load(&*disk);
        let session = now.max(last_session(&*disk, saved.as_ref()).saturating_add(1));
        match disk.replace(SESSION, format!("{session}\n").as_bytes()) {
            Ok(()) => {}
            // The clock lets the number grow until there is room again.
            Err(error) if is_temporary(&error) => self.failed(&error),
            Err(cause) => return Err(NodeError::State { cause }),
        }
        let mut node = match saved {
            Some(saved) => Node::restore(settings, session, saved),
            None => Node::new(settings, session),
        };
        self.replay(&*disk, &mut node);
        Ok(node)
    }

    /// The saved state; a file that is damaged or of another version is set aside.
    fn load(&mut self, disk: &dyn Disk) -> Option<SavedNode> {
        let bytes = disk.read(STATE).unwrap_or_else(|error| {
            tracing::error!(%error, "cannot read the saved state; starting without it");
            None
        })?;
        let saved = decode(&bytes);
        if saved.is_none() {
            tracing::error!(
                "the saved state is damaged or of another version; set aside, starting without it"
            );
            if let Err(error) = disk.set_aside(STATE) {
                self.failed(&error);
            }
        }
        saved
    }

    /// Adds the data of the journal to the node.
    fn replay(&mut self, disk: &dyn Disk, node: &mut Node) {
        let bytes = match disk.read(JOURNAL) {
            Ok(bytes) => bytes.unwrap_or_default(),
            Err(error) => {
                tracing::error!(%error, "cannot read the journal; its readings are lost");
                Vec::new()
            }
        };
        let (entries, whole) = journal::read(&bytes);
        entries.iter().for_each(|entry| node.replay(entry));
        self.journal_bytes = whole as u64;
        if whole == 0 && !bytes.is_empty() {
            tracing::error!("the journal is damaged or of another version; set aside, going on without it");
            if let Err(error) = disk.set_aside(JOURNAL) {
                self.failed(&error);
            }
        } else if whole < bytes.len() {
            tracing::warn!(bytes = bytes.len() - whole, "the end of the journal is incomplete; truncated");
            if let Err(error) = disk.truncate(JOURNAL, whole as u64) {
                self.failed(&error);
            }
        }
    }

    /// Appends an entry to the journal; true if the node must be [saved](Self::save).
    pub(super) async fn append(&mut self, entry: &JournalEntry) -> bool {
        let Some(disk) = self.disk.clone() else { return false };
        if !self.complete {
            return true;
        }
        let record = journal::record(entry);
        let bytes = record.len() as u64;
        let sync = self.synced_at.is_none_or(|synced_at| synced_at.elapsed() > SYNC_EVERY);
        match blocking(move || disk.append(JOURNAL, &record, sync)).await {
            Ok(()) => {
                self.journal_bytes += bytes;
                self.synced_at = if sync { Some(Instant::now()) } else { self.synced_at };
            }
            // Nothing may follow half an entry: saving the node empties the journal.
            Err(error) => self.failed(&error),
        }
        !self.complete || self.journal_bytes > JOURNAL_BYTES_MAX || self.saved_at.elapsed() > JOURNAL_AGE_MAX
    }

    /// Saves the node; a failure is logged, and the node continues.
    pub(super) async fn save(&mut self, node: &Node) {
        let Some(disk) = self.disk.clone() else { return };
        let saved = node.save();
        // Between the two, the journal holds entries that are in the state already.
        let write = move || {
            disk.replace(STATE, &encode(&saved))?;
            disk.truncate(JOURNAL, 0)
        };
        match blocking(write).await {
            Ok(()) => {
                if std::mem::take(&mut self.failing) {
                    tracing::info!("state folder writable again; no data lost");
                }
                self.complete = true;
                self.journal_bytes = 0;
                self.saved_at = Instant::now();
            }
            Err(error) => self.failed(&error),
        }
    }

    fn failed(&mut self, error: &io::Error) {
        self.complete = false;
        if !std::mem::replace(&mut self.failing, true) {
            tracing::error!(%error, "cannot write to the state folder; new readings do not survive a restart until this ends");
        }
    }
}

async fn blocking<T: Send + 'static>(
    write: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    task::spawn_blocking(write).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// The error may be temporary, so that a node need not refuse to start.
fn is_temporary(error: &io::Error) -> bool {
    use ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | ReadOnlyFilesystem)
}

/// The greatest session number that is known to have been used.
fn last_session(disk: &dyn Disk, saved: Option<&SavedNode>) -> u64 {
    let written = disk.read(SESSION).ok().flatten().and_then(|bytes| String::from_utf8(bytes).ok());
    let written = written.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    saved.map_or(0, SavedNode::session).max(written)
}

fn encode(saved: &SavedNode) -> Vec<u8> {
    let body = postcard::to_allocvec(saved).expect("a saved node holds nothing that postcard cannot write");
    [FORM, &Digest::of(&body).0[..], &body].concat()
}

fn decode(bytes: &[u8]) -> Option<SavedNode> {
    let (digest, body) = bytes.strip_prefix(FORM)?.split_at_checked(DIGEST_BYTES)?;
    (digest == Digest::of(body).0).then(|| postcard::from_bytes(body).ok())?
}

#[cfg(test)]
mod tests;
