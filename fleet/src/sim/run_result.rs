//! The end of a run and its cost.

use evenhand_federation::RoundEvidence;
use serde::{Deserialize, Serialize};

use super::SimulationError;

/// The end of a run and its cost.
#[derive(Debug, Clone)]
pub struct RunResult {
    /// Its end.
    pub ended: RunEnd,
    /// Its cost.
    pub cost: RunCost,
    /// By node: the skill of its own forecasts, where it made any.
    pub skills: Vec<Option<f64>>,
}

/// The end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunEnd {
    /// All rounds were done.
    Complete,
    /// Its user ended it before.
    Interrupted,
}

/// The cost of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RunCost {
    /// Bytes of all messages from nodes.
    pub bytes_up: u64,
    /// Bytes of all messages to nodes.
    pub bytes_down: u64,
    /// Time the nodes spent in training, summed.
    pub seconds_training: f64,
    /// Time the coordinator spent closing rounds: contributions, stop rule, aggregation, record.
    pub seconds_fairness: f64,
}

/// A callback for every closed round, with the seconds that the coordinator spent on closing it.
pub type OnRound<'a> = dyn FnMut(&RoundEvidence, f64) -> Result<(), SimulationError> + Send + 'a;
