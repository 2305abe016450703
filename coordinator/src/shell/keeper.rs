//! Who keeps the state.

use std::sync::Arc;

use evenhand_federation::{RoundEvidence, SavedFederation};

/// Makes the state durable, so that a coordinator that is killed can go on.
pub trait Keeper: Send {
    /// Keeps the state and the rounds that led to it, all or nothing. It must hold when this returns.
    fn keep(&mut self, closed: &[Arc<RoundEvidence>], saved: SavedFederation) -> Result<(), KeepError>;
}

/// Why the state could not be kept.
pub type KeepError = Box<dyn std::error::Error + Send + Sync>;

/// Keeps nothing: for demos and experiments.
#[derive(Debug, Clone, Copy, Default)]
pub struct Forgetful;

impl Keeper for Forgetful {
    fn keep(&mut self, _closed: &[Arc<RoundEvidence>], _saved: SavedFederation) -> Result<(), KeepError> {
        Ok(())
    }
}
