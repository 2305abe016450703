//! Panics of redb on a damaged file, turned into errors.

use std::cell::Cell;
use std::ops::Deref;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

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

thread_local! {
    /// True while a panic of this thread means a damaged file.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// The result of `work`; a panic means a damaged file, and is not printed as one of the program.
pub(super) fn catch_damage<T>(work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |panic| match GUARDED.get() {
            true => tracing::debug!("{panic}"),
            false => others(panic),
        }));
    });
    let outer = GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    done.unwrap_or_else(|_| Err(StoreError::Damaged("its pages contradict each other".into())))
}
