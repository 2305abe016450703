//! A federation on disk: its state, and a log from which everything it decided can be recomputed.
//!
//! One redb file in the state folder. What a round decided and the state it led to are one transaction,
//! which is on the disk before anything is announced.
//!
//! | table | key | value |
//! |---|---|---|
//! | `federation` | name | format, ONNX file, founding state, latest state |
//! | `rounds` | round | its record: every φ, ψ, p-value, draw and digest |
//! | `updates` | round | the updates that counted, as received |
//! | `rules` | the first round they hold for | the rules |
//! | `anchors` | round | the state after it, from which later rounds can be checked |
//!
//! Records are kept for ever. Updates are large: those of at least the last `keep_rounds` rounds are kept,
//! and an anchor before them, so that these rounds can be recomputed to the last bit.

pub mod audit;
mod backup;
mod error;
mod guard;
mod log;

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use evenhand_protocol::identity::Digest;
use redb::{Database, ReadableDatabase, TableDefinition, WriteTransaction};

use self::guard::{Guarded, sound};

pub use self::error::StoreError;
pub use self::log::Log;

use crate::shell::{KeepError, Keeper};
use evenhand_federation::{Federation, RestoreError, RoundEvidence, Rules, SavedFederation};

/// The file in the state folder.
pub const FILE: &str = "federation.redb";

/// Changes when this program's tables could be misunderstood by another.
const FORMAT: u16 = 1;

const FEDERATION: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("federation");
const ROUNDS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("rounds");
const UPDATES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("updates");
const RULES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("rules");
const ANCHORS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("anchors");

/// Keys of the `federation` table.
mod key {
    pub(super) const FORMAT: &str = "format";
    pub(super) const ONNX: &str = "onnx";
    pub(super) const FOUNDED: &str = "founded";
    pub(super) const LATEST: &str = "latest";
}

/// A federation's state folder, open for this process alone.
#[derive(Debug)]
pub struct Store {
    database: Guarded,
    folder: PathBuf,
}

impl Store {
    /// Opens the store in `folder`, which must be there.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        if !folder.join(FILE).exists() {
            return Err(StoreError::Absent { folder: folder.to_owned() });
        }
        Self::open_or_create(folder)
    }

    /// Opens the store in `folder`; an empty one if there is none.
    pub fn open_or_create(folder: &Path) -> Result<Self, StoreError> {
        let io = |source| StoreError::Io { path: folder.to_owned(), source };
        make_folder(folder).map_err(io)?;
        if !folder.join(FILE).exists() {
            make(folder)?;
        }
        let open = || Database::create(folder.join(FILE));
        let database = sound(|| {
            open().map_err(|error| match error {
                redb::DatabaseError::DatabaseAlreadyOpen => StoreError::InUse { folder: folder.to_owned() },
                redb::DatabaseError::Storage(redb::StorageError::Io(source))
                    if source.kind() != ErrorKind::InvalidData =>
                {
                    io(source)
                }
                other => StoreError::from(redb::Error::from(other)),
            })
        })?;
        let store = Self { database: database.into(), folder: folder.to_owned() };
        match store.value(key::FORMAT)? {
            None => {}
            Some(bytes) => match <[u8; 2]>::try_from(bytes.as_slice()).map(u16::from_le_bytes) {
                Ok(FORMAT) => {}
                Ok(found) => return Err(StoreError::Format { found, known: FORMAT }),
                Err(_) => return Err(StoreError::Damaged("its format is no number".into())),
            },
        }
        Ok(store)
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The federation that is kept here, by `rules` that may amend those it was founded with; or `fresh`, kept
    /// from now on.
    pub fn resume(&self, fresh: Federation) -> Result<Federation, StoreError> {
        let Some(onnx) = self.onnx()? else {
            self.found(&fresh)?;
            return Ok(fresh);
        };
        let mut saved = self.latest()?;
        let amended = saved.rules().amended(fresh.rules())?;
        if Digest::of(fresh.onnx()) != Digest::of(&onnx) {
            return Err(RestoreError::Onnx.into());
        }
        if amended != *saved.rules() {
            saved.amend(amended.clone());
            self.write(|transaction| {
                let mut rules = transaction.open_table(RULES)?;
                rules.insert(saved.next_round(), encoded(&amended).as_slice())?;
                keep_state(transaction, key::LATEST, saved.clone())
            })?;
        }
        restored(saved, onnx)
    }

    /// The federation that is kept here.
    pub fn federation(&self) -> Result<Federation, StoreError> {
        let onnx = self.onnx()?.ok_or_else(|| self.absent())?;
        restored(self.latest()?, onnx)
    }

    fn found(&self, federation: &Federation) -> Result<(), StoreError> {
        let saved = federation.save();
        self.write(|transaction| {
            let mut table = transaction.open_table(FEDERATION)?;
            table.insert(key::FORMAT, FORMAT.to_le_bytes().as_slice())?;
            table.insert(key::ONNX, &federation.onnx()[..])?;
            drop(table);
            transaction.open_table(RULES)?.insert(1, encoded(federation.rules()).as_slice())?;
            for table in [ROUNDS, UPDATES, ANCHORS] {
                transaction.open_table(table)?;
            }
            keep_state(transaction, key::FOUNDED, saved.clone())?;
            keep_state(transaction, key::LATEST, saved)
        })
    }

    fn onnx(&self) -> Result<Option<Arc<[u8]>>, StoreError> {
        Ok(self.value(key::ONNX)?.map(Arc::from))
    }

    fn latest(&self) -> Result<SavedFederation, StoreError> {
        let bytes = self.value(key::LATEST)?.ok_or_else(|| self.absent())?;
        self.saved(&bytes)
    }

    /// A kept state with its history.
    fn saved(&self, bytes: &[u8]) -> Result<SavedFederation, StoreError> {
        let state = sealed::open(bytes)
            .ok_or_else(|| StoreError::Damaged("the federation's state is not what was written".into()))?;
        let log = self.log()?;
        SavedFederation::from_bytes(state)?.with_history(|round| log.record(round))
    }

    fn value(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let transaction = self.database.begin_read()?;
        match transaction.open_table(FEDERATION) {
            Ok(table) => Ok(table.get(key)?.map(|value| value.value().to_vec())),
            Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn absent(&self) -> StoreError {
        StoreError::Absent { folder: self.folder.clone() }
    }

    /// All of `changes` or nothing; on the disk when this returns.
    fn write(
        &self,
        changes: impl FnOnce(&WriteTransaction) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        sound(|| {
            let transaction = self.database.begin_write()?;
            changes(&transaction)?;
            Ok(transaction.commit()?)
        })
    }
}

/// Makes a folder that nobody else can look into: the latest model is the reward.
fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Makes an empty store beside its place and moves it there: a program that is killed leaves a whole one or none. Temporary
/// files can be read by their owner alone, and so can what becomes of this one.
fn make(folder: &Path) -> Result<(), StoreError> {
    let io = |source| StoreError::Io { path: folder.to_owned(), source };
    let aside = tempfile::Builder::new().prefix(FILE).tempfile_in(folder).map_err(io)?;
    drop(Database::create(aside.path()).map_err(redb::Error::from)?);
    match aside.persist_noclobber(folder.join(FILE)) {
        Ok(_) => fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(io),
        // Somebody else was quicker.
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(io(error.error)),
    }
}

fn keep_state(transaction: &WriteTransaction, key: &str, saved: SavedFederation) -> Result<(), StoreError> {
    let bytes = sealed::close(saved.without_history().to_bytes());
    transaction.open_table(FEDERATION)?.insert(key, bytes.as_slice())?;
    Ok(())
}

fn encoded(rules: &Rules) -> Vec<u8> {
    postcard::to_allocvec(rules).expect("plain data always encodes")
}

/// Bytes with their digest: redb checks its pages only after a crash.
mod sealed {
    use evenhand_protocol::identity::Digest;

    pub(super) fn close(mut bytes: Vec<u8>) -> Vec<u8> {
        let digest = Digest::of(&bytes);
        bytes.extend_from_slice(&digest.0);
        bytes
    }

    pub(super) fn open(bytes: &[u8]) -> Option<&[u8]> {
        let (bytes, digest) = bytes.split_last_chunk::<32>()?;
        (Digest::of(bytes).0 == *digest).then_some(bytes)
    }
}

/// Keeps a federation in its store.
#[derive(Debug)]
pub struct Durable {
    store: Arc<Store>,
    keep_rounds: u32,
}

impl Durable {
    /// Updates of at least the last `keep_rounds` rounds stay; 0 keeps all of them.
    pub fn new(store: Arc<Store>, keep_rounds: u32) -> Self {
        Self { store, keep_rounds }
    }
}

impl Keeper for Durable {
    fn keep(&mut self, closed: &[Arc<RoundEvidence>], saved: SavedFederation) -> Result<(), KeepError> {
        self.store.write(|transaction| {
            for closed in closed {
                log::append(transaction, closed)?;
            }
            if let Some(last) = closed.last() {
                log::thin(transaction, last.record.round, self.keep_rounds, &saved)?;
            }
            keep_state(transaction, key::LATEST, saved)
        })?;
        Ok(())
    }
}

/// A federation from what is kept of it. Both parts lie here, so that one which does not fit the other is damage.
fn restored(saved: SavedFederation, onnx: Arc<[u8]>) -> Result<Federation, StoreError> {
    Federation::restore(saved, onnx).map_err(|error| match error {
        RestoreError::Onnx => {
            StoreError::Damaged("the ONNX file kept here is not the one it was founded with".into())
        }
        other => other.into(),
    })
}
