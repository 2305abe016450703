//! What a node must not forget, in its state folder.
//!
//! `state` is the whole node, replaced atomically; `journal` is what came in since then, so that each reading costs a few
//! bytes instead of the whole; `session` is the number of the last start.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use evenhand_protocol::identity::Digest;
use tokio::task;

use super::NodeError;
use super::disk::Disk;
use crate::core::{Entry, Node, Saved, Settings};
use crate::journal;

const STATE: &str = "state";
const JOURNAL: &str = "journal";
const SESSION: &str = "session";

/// First bytes of a state file; the number changes with its form.
const FORM: &[u8; 8] = b"evhnode3";
const DIGEST_BYTES: usize = 32;
/// From this size on the journal is replaced by a new state.
const JOURNAL_BYTES_MAX: u64 = 256 * 1024;
/// So is one that is this old.
const JOURNAL_AGE_MAX: Duration = Duration::from_secs(3600);
/// What a power cut may cost; a killed process loses nothing. Memory cards do not live for ever.
const SYNC_EVERY: Duration = Duration::from_secs(60);

/// A place to keep a node, or none.
#[derive(Debug)]
pub(super) struct State {
    disk: Option<Arc<dyn Disk>>,
    journal_bytes: u64,
    /// Whether state and journal together are the node; if not, only saving it helps.
    complete: bool,
    saved_at: Instant,
    synced_at: Option<Instant>,
    /// A failure is said once until it is over.
    failing: bool,
}

impl State {
    /// The node as it was when it last ran, in a new session that begins at `now_ms`; a new one if nothing was saved.
    pub(super) async fn open(
        disk: Option<Arc<dyn Disk>>,
        settings: Settings,
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

    fn restore(&mut self, settings: Settings, now_ms: i64) -> Result<Node, NodeError> {
        let now = u64::try_from(now_ms).unwrap_or(0);
        let Some(disk) = self.disk.clone() else { return Ok(Node::new(settings, now)) };
        let saved = self.load(&*disk);
        let session = now.max(last_session(&*disk, saved.as_ref()).saturating_add(1));
        match disk.replace(SESSION, format!("{session}\n").as_bytes()) {
            Ok(()) => {}
            // The clock lets the number grow until there is room again.
            Err(error) if passes(&error) => self.failed(&error),
            Err(cause) => return Err(NodeError::State { cause }),
        }
        let mut node = match saved {
            Some(saved) => Node::restore(settings, session, saved),
            None => Node::new(settings, session),
        };
        self.replay(&*disk, &mut node);
        Ok(node)
    }

    /// What was saved; a file that is damaged or of another version is put aside.
    fn load(&mut self, disk: &dyn Disk) -> Option<Saved> {
        let bytes = disk.read(STATE).unwrap_or_else(|error| {
            tracing::error!(%error, "cannot read the saved state; beginning anew");
            None
        })?;
        let saved = decode(&bytes);
        if saved.is_none() {
            tracing::error!(
                "the saved state is damaged or of another version; it is put aside, beginning anew"
            );
            if let Err(error) = disk.put_aside(STATE) {
                self.failed(&error);
            }
        }
        saved
    }

    /// Gives the node what came in after it was saved.
    fn replay(&mut self, disk: &dyn Disk, node: &mut Node) {
        let bytes = match disk.read(JOURNAL) {
            Ok(bytes) => bytes.unwrap_or_default(),
            Err(error) => {
                tracing::error!(%error, "cannot read the journal; what it holds is lost");
                Vec::new()
            }
        };
        let (entries, whole) = journal::read(&bytes);
        entries.iter().for_each(|entry| node.replay(entry));
        self.journal_bytes = whole as u64;
        if whole < bytes.len() {
            tracing::warn!(bytes = bytes.len() - whole, "the end of the journal is incomplete and cut off");
            if let Err(error) = disk.cut(JOURNAL, whole as u64) {
                self.failed(&error);
            }
        }
    }

    /// Writes down what came in; whether it is time to [save](Self::save) the node.
    pub(super) async fn note(&mut self, entry: &Entry) -> bool {
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
            // Nothing may follow what may be half an entry: saving the node empties the journal.
            Err(error) => self.failed(&error),
        }
        !self.complete || self.journal_bytes > JOURNAL_BYTES_MAX || self.saved_at.elapsed() > JOURNAL_AGE_MAX
    }

    /// Saves the node; a failure is said, and the node goes on.
    pub(super) async fn save(&mut self, node: &Node) {
        let Some(disk) = self.disk.clone() else { return };
        let saved = node.save();
        // Between the two, the journal holds what the state knows already.
        let write = move || {
            disk.replace(STATE, &encode(&saved))?;
            disk.cut(JOURNAL, 0)
        };
        match blocking(write).await {
            Ok(()) => {
                if std::mem::take(&mut self.failing) {
                    tracing::info!("the state folder can be written again; nothing is missing");
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
            tracing::error!(%error, "cannot write to the state folder; until that is over, new readings do not survive a restart");
        }
    }
}

async fn blocking<T: Send + 'static>(
    write: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    task::spawn_blocking(write).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// Whether an error may pass by itself, so that a node lives through it instead of refusing to start.
fn passes(error: &io::Error) -> bool {
    use ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | ReadOnlyFilesystem)
}

/// The greatest session number that is known to have been used.
fn last_session(disk: &dyn Disk, saved: Option<&Saved>) -> u64 {
    let noted = disk.read(SESSION).ok().flatten().and_then(|bytes| String::from_utf8(bytes).ok());
    let noted = noted.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    saved.map_or(0, Saved::session).max(noted)
}

fn encode(saved: &Saved) -> Vec<u8> {
    let body = postcard::to_allocvec(saved).expect("a saved node holds nothing that postcard cannot write");
    [FORM, &Digest::of(&body).0[..], &body].concat()
}

fn decode(bytes: &[u8]) -> Option<Saved> {
    let (digest, body) = bytes.strip_prefix(FORM)?.split_at_checked(DIGEST_BYTES)?;
    (digest == Digest::of(body).0).then(|| postcard::from_bytes(body).ok())?
}

#[cfg(test)]
mod tests;
