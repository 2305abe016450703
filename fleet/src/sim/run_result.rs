//! The end of a run.

use evenhand_federation::RoundEvidence;

use super::SimulationError;
use crate::outcome::{Cost, Ended};

/// The end of a run and its cost.
#[derive(Debug, Clone, Copy)]
pub struct RunResult {
    /// True if it reached its last round.
    pub ended: Ended,
    /// Its cost.
    pub cost: Cost,
}

/// A callback for every closed round, with the seconds that the coordinator spent on closing it.
pub type OnRound<'a> = dyn FnMut(&RoundEvidence, f64) -> Result<(), SimulationError> + Send + 'a;
