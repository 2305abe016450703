//! Creation of empty stores.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use evenhand_program::atomic::AtomicFile;
use redb::Database;

use super::{FILE, StoreError};

/// Creates a folder that only its owner can read: the latest model is the reward.
pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Creates an empty store that only its owner can read, as a whole: a program that is killed leaves a complete one or none.
pub(super) fn create_empty(folder: &Path) -> Result<(), StoreError> {
    let io = |source| StoreError::Io { path: folder.to_owned(), source };
    let temporary = AtomicFile::new(folder.join(FILE)).owner_only().temporary().map_err(io)?;
    drop(Database::create(temporary.path()).map_err(redb::Error::from)?);
    // If another process was faster, its store is as good.
    temporary.persist_new().map(drop).map_err(io)
}
