//! redb trusts what lies on the disk; where that is damaged, it may panic.

use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};

use redb::Database;

use super::StoreError;

/// A database that is closed without a panic. What was committed is on the disk by then; bookkeeping that could not be
/// written is made up for when it is opened again.
#[derive(Debug)]
pub(super) struct Guarded(Option<Database>);

impl From<Database> for Guarded {
    fn from(database: Database) -> Self {
        Self(Some(database))
    }
}

impl Deref for Guarded {
    type Target = Database;
    fn deref(&self) -> &Database {
        self.0.as_ref().expect("it is taken only when dropped")
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let database = self.0.take();
        let close = || {
            drop(database);
            Ok(())
        };
        if let Err(error) = sound(close) {
            tracing::error!(%error, "closing the state");
        }
    }
}

/// What `work` comes to, or that the file is damaged.
pub(super) fn sound<T>(work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let damaged = |_| Err(StoreError::Damaged("its pages contradict each other".into()));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(damaged)
}
