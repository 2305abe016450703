//! Creation of empty stores.

use std::path::Path;

use evenhand_program::atomic::AtomicFile;
use redb::Database;

use super::{FILE, StoreError};

/// Creates an empty store that only its owner can read, as a whole: a program that is killed leaves a complete one or none.
pub(super) fn create_empty(folder: &Path) -> Result<(), StoreError> {
    let io = |source| StoreError::Io { path: folder.to_owned(), source };
    let temporary = AtomicFile::new(folder.join(FILE)).owner_only().temporary().map_err(io)?;
    drop(Database::create(temporary.path()).map_err(redb::Error::from)?);
    // If another process was faster, its store is as good.
    temporary.persist_new().map(drop).map_err(io)
}
