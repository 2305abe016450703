//! Creation of empty stores.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use redb::Database;

use super::{FILE, StoreError};

/// Creates a folder that only its owner can read: the latest model is the reward.
pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Creates an empty store beside its place and moves it there: a program that is killed leaves a complete one or none.
/// Temporary files can be read by their owner alone, and so can the store.
pub(super) fn create_empty(folder: &Path) -> Result<(), StoreError> {
    let io = |source| StoreError::Io { path: folder.to_owned(), source };
    let draft = tempfile::Builder::new().prefix(FILE).tempfile_in(folder).map_err(io)?;
    drop(Database::create(draft.path()).map_err(redb::Error::from)?);
    match draft.persist_noclobber(folder.join(FILE)) {
        Ok(_) => fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(io),
        // Another process was faster.
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(io(error.error)),
    }
}
