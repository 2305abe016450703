//! Persistence of the federation's state.

use std::sync::Arc;

use evenhand_federation::{RoundEvidence, SavedFederation};

/// Makes the state durable, so that a coordinator that is killed can resume.
pub trait Persistence: Send {
    /// Writes the closed rounds and the state they led to, all or nothing. They are durable when this returns.
    fn persist(
        &mut self,
        rounds: &[Arc<RoundEvidence>],
        saved: SavedFederation,
    ) -> Result<(), PersistenceError>;
}

/// The cause of a failed write.
pub type PersistenceError = Box<dyn std::error::Error + Send + Sync>;

/// Writes nothing: for demos and experiments.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPersistence;

impl Persistence for NoPersistence {
    fn persist(
        &mut self,
        _rounds: &[Arc<RoundEvidence>],
        _saved: SavedFederation,
    ) -> Result<(), PersistenceError> {
        Ok(())
    }
}
