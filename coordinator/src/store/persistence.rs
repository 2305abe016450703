//! The store as the coordinator's persistence.

use std::sync::Arc;

use super::{Store, key, log, write_state};
use crate::shell::{Persistence, PersistenceError};
use evenhand_federation::{RoundEvidence, SavedFederation};

/// Writes a federation to its store.
#[derive(Debug)]
pub struct StorePersistence {
    store: Arc<Store>,
    keep_rounds: u32,
    keep_updates: bool,
}

impl StorePersistence {
    /// Updates of at least the last `keep_rounds` rounds stay; 0 keeps all of them.
    pub fn new(store: Arc<Store>, keep_rounds: u32) -> Self {
        Self { store, keep_rounds, keep_updates: true }
    }

    /// Keeps the digests of updates only, and deletes the updates that are stored.
    pub fn digests_only(self) -> Self {
        Self { keep_updates: false, ..self }
    }
}

impl Persistence for StorePersistence {
    fn persist(
        &mut self,
        rounds: &[Arc<RoundEvidence>],
        saved: SavedFederation,
    ) -> Result<(), PersistenceError> {
        self.store.write(|transaction| {
            for evidence in rounds {
                match self.keep_updates {
                    true => log::append(transaction, evidence)?,
                    false => log::append_digests(transaction, evidence)?,
                }
            }
            if let Some(last) = rounds.last().filter(|_| self.keep_updates) {
                log::prune(transaction, last.round.round, self.keep_rounds, &saved)?;
            }
            write_state(transaction, key::LATEST, saved)
        })?;
        Ok(())
    }
}
