//! Panics of redb on a damaged file, turned into errors.

use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};

use redb::Database;

use super::StoreError;

/// A database that is closed without a panic. Commits are on the disk by then; bookkeeping that could not be written is
/// repaired at the next opening.
#[derive(Debug)]
pub(super) struct PanicSafeDatabase(Option<Database>);

impl From<Database> for PanicSafeDatabase {
    fn from(database: Database) -> Self {
        Self(Some(database))
    }
}

impl Deref for PanicSafeDatabase {
    type Target = Database;
    fn deref(&self) -> &Database {
        self.0.as_ref().expect("taken only in drop")
    }
}

impl Drop for PanicSafeDatabase {
    fn drop(&mut self) {
        let database = self.0.take();
        let close = || {
            drop(database);
            Ok(())
        };
        if let Err(error) = catch_damage(close) {
            tracing::error!(%error, "cannot close the state");
        }
    }
}

/// The result of `work`; a panic means a damaged file.
pub(super) fn catch_damage<T>(work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let damaged = |_| Err(StoreError::Damaged("its pages contradict each other".into()));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(damaged)
}
