//! A federation on disk: its state, and a log from which every decision can be recomputed.
//!
//! One redb file in the state folder. A round's decisions and the state after it are one transaction, which is on the disk
//! before anything is announced.
//!
//! | table | key | value |
//! |---|---|---|
//! | `federation` | name | format, ONNX file, initial state, latest state |
//! | `rounds` | round | its record: every φ, ψ, p-value, draw and digest |
//! | `updates` | round | the accepted updates, as received |
//! | `digests` | round | the digests of the updates, where these are not kept |
//! | `rules` | the first round they apply to | the rules |
//! | `registry` | number | names, keys and invitations: one change each |
//! | `checkpoints` | round | the state after it, from which later rounds can be recomputed |
//!
//! Records are never deleted. Updates are large: those of at least the last `keep_rounds` rounds stay, and a checkpoint
//! before them, so that these rounds can be recomputed to the last bit.

pub mod audit;
mod backup;
mod checksum;
mod create;
pub mod digests;
mod error;
mod guard;
mod log;
mod persistence;
mod record_check;
mod registry;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use evenhand_program::private;
use evenhand_protocol::identity::Digest;
use redb::{Database, ReadableDatabase, TableDefinition, WriteTransaction};

use self::create::create_empty;
use self::guard::{PanicSafeDatabase, catch_damage};

pub use self::error::StoreError;
pub use self::log::LogSnapshot;
pub use self::persistence::StorePersistence;

use evenhand_federation::{Federation, RestoreError, Rules, SavedFederation};

/// The file in the state folder.
pub const FILE: &str = "federation.redb";

/// The version of the tables; it changes when an older program would misread them.
const FORMAT: u16 = 4;

const FEDERATION: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("federation");
const ROUNDS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("rounds");
const UPDATES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("updates");
const DIGESTS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("digests");
const RULES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("rules");
const CHECKPOINTS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("checkpoints");

/// Keys of the `federation` table.
mod key {
    pub(super) const FORMAT: &str = "format";
    pub(super) const ONNX: &str = "onnx";
    pub(super) const INITIAL: &str = "initial";
    pub(super) const LATEST: &str = "latest";
}

/// A federation's state folder, open for this process alone.
#[derive(Debug)]
pub struct Store {
    database: PanicSafeDatabase,
    folder: PathBuf,
}

impl Store {
    /// Opens an existing store.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        if !folder.join(FILE).exists() {
            return Err(StoreError::Absent { folder: folder.to_owned() });
        }
        Self::open_or_create(folder)
    }

    /// Opens the store in `folder`, after creating an empty one if there is none.
    pub fn open_or_create(folder: &Path) -> Result<Self, StoreError> {
        let io = |source| StoreError::Io { path: folder.to_owned(), source };
        private::create_folder(folder).map_err(io)?;
        if !folder.join(FILE).exists() {
            create_empty(folder)?;
        }
        // The latest model is the reward, and updates say something about their senders' data.
        if let Some(said) = private::restrict_and_say(folder, &[FILE]) {
            tracing::warn!("{said}");
        }
        let open = || Database::create(folder.join(FILE));
        let database = catch_damage(|| {
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
                Err(_) => return Err(StoreError::Damaged("its format is not a number".into())),
            },
        }
        Ok(store)
    }

    /// The state folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The stored federation, with the rules of `fresh` where they may change; `fresh` itself, now stored, if there is none.
    pub fn resume(&self, fresh: Federation) -> Result<Federation, StoreError> {
        let Some(onnx) = self.onnx()? else {
            self.insert(&fresh)?;
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
                write_state(transaction, key::LATEST, saved.clone())
            })?;
        }
        restored(saved, onnx)
    }

    /// The stored federation.
    pub fn federation(&self) -> Result<Federation, StoreError> {
        let onnx = self.onnx()?.ok_or_else(|| self.absent())?;
        restored(self.latest()?, onnx)
    }

    fn insert(&self, federation: &Federation) -> Result<(), StoreError> {
        let saved = federation.save();
        self.write(|transaction| {
            let mut table = transaction.open_table(FEDERATION)?;
            table.insert(key::FORMAT, FORMAT.to_le_bytes().as_slice())?;
            table.insert(key::ONNX, &federation.onnx()[..])?;
            drop(table);
            transaction.open_table(RULES)?.insert(1, encoded(federation.rules()).as_slice())?;
            for table in [ROUNDS, UPDATES, DIGESTS, CHECKPOINTS] {
                transaction.open_table(table)?;
            }
            write_state(transaction, key::INITIAL, saved.clone())?;
            write_state(transaction, key::LATEST, saved)
        })
    }

    fn onnx(&self) -> Result<Option<Arc<[u8]>>, StoreError> {
        Ok(self.value(key::ONNX)?.map(Arc::from))
    }

    fn latest(&self) -> Result<SavedFederation, StoreError> {
        let bytes = self.value(key::LATEST)?.ok_or_else(|| self.absent())?;
        self.saved(&bytes)
    }

    /// A stored state with its history.
    fn saved(&self, bytes: &[u8]) -> Result<SavedFederation, StoreError> {
        let state = checksum::verified(bytes)
            .ok_or_else(|| StoreError::Damaged("the checksum of the federation's state is wrong".into()))?;
        let log = self.log()?;
        SavedFederation::from_bytes(state)?.with_history(|round| log.record(round))
    }

    fn value(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        catch_damage(|| {
            let transaction = self.database.begin_read()?;
            match transaction.open_table(FEDERATION) {
                Ok(table) => Ok(table.get(key)?.map(|value| value.value().to_vec())),
                Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
                Err(error) => Err(error.into()),
            }
        })
    }

    fn absent(&self) -> StoreError {
        StoreError::Absent { folder: self.folder.clone() }
    }

    /// Writes all of `changes` or nothing; they are on the disk when this returns.
    fn write(
        &self,
        changes: impl FnOnce(&WriteTransaction) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        catch_damage(|| {
            let mut transaction = self.database.begin_write()?;
            // Updates are foreign bytes: whoever chooses them must not be able to make up a page that passes for a commit.
            transaction.set_two_phase_commit(true);
            changes(&transaction)?;
            Ok(transaction.commit()?)
        })
    }
}

fn write_state(transaction: &WriteTransaction, key: &str, saved: SavedFederation) -> Result<(), StoreError> {
    let bytes = checksum::append(saved.without_history().to_bytes());
    transaction.open_table(FEDERATION)?.insert(key, bytes.as_slice())?;
    Ok(())
}

fn encoded(rules: &Rules) -> Vec<u8> {
    postcard::to_allocvec(rules).expect("plain data always encodes")
}

/// The federation of a stored state. State and ONNX file are both stored here: if they do not fit, the store is damaged.
fn restored(saved: SavedFederation, onnx: Arc<[u8]>) -> Result<Federation, StoreError> {
    Federation::restore(saved, onnx).map_err(|error| match error {
        RestoreError::Onnx => {
            StoreError::Damaged("the stored ONNX file is not the one of the stored state".into())
        }
        other => other.into(),
    })
}
