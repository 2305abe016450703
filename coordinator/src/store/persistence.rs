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
}

impl StorePersistence {
    /// Updates of at least the last `keep_rounds` rounds stay; 0 keeps all of them.
    pub fn new(store: Arc<Store>, keep_rounds: u32) -> Self {
        Self { store, keep_rounds }
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
                log::append(transaction, evidence)?;
            }
            if let Some(last) = rounds.last() {
                log::prune(transaction, last.round.round, self.keep_rounds, &saved)?;
            }
            write_state(transaction, key::LATEST, saved)
        })?;
        Ok(())
    }
}
