//! `[continuous]`: measurement in every round, and draws by what is known so far.

use serde::{Deserialize, Serialize};

use super::check::{RuleError, at_least_one, within};

/// The wait that is promised where none is set, in units of the wait under equal odds.
const WORST_WAIT_RATIO: f64 = 3.0;

/// The policy `continuous`: everybody is measured in every round, and some are drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContinuousConfig {
    /// The promise: no node waits longer for the latest model than so many rounds on average; the temperature β follows from
    /// it. 0 promises three times the wait under equal odds, whatever the number of nodes.
    pub worst_wait: f64,
    /// Rounds after which a contribution has faded to a third: the memory of standings.
    pub memory_rounds: u32,
    /// New reference weights are chosen every so many rounds, so that nobody can learn the gradients there by heart.
    pub reference_rounds: u32,
    /// Values of a reference gradient that travel: a longer gradient is sketched.
    pub sketch_dimension: u32,
    /// A newcomer is measured for so many rounds before it can be drawn.
    pub newcomer_rounds: u32,
}

impl Default for ContinuousConfig {
    fn default() -> Self {
        Self {
            worst_wait: 0.0,
            memory_rounds: 200,
            reference_rounds: 500,
            sketch_dimension: 4096,
            newcomer_rounds: 10,
        }
    }
}

impl ContinuousConfig {
    /// This file, whose doc comments explain the keys in `print-config`.
    pub const SOURCE: &str = include_str!("continuous.rs");

    /// Checks the section for a federation of at most `nodes_max` nodes, of which `k` are drawn.
    pub(super) fn check(&self, nodes_max: u32, k: u32) -> Result<(), RuleError> {
        let worst = self.worst_wait;
        let holds = worst.is_finite() && worst >= 0.0;
        within("continuous.worst_wait", worst, holds, "0 (three times equal odds) or a number of rounds")?;
        if worst > 0.0 && f64::from(nodes_max) > worst * f64::from(k) {
            return Err(RuleError::WaitOutOfReach { worst_wait: worst, nodes: nodes_max, k });
        }
        let memory = self.memory_rounds;
        within("continuous.memory_rounds", memory.into(), memory >= 10, "at least 10")?;
        at_least_one("continuous.newcomer_rounds", self.newcomer_rounds)?;
        let sketch = self.sketch_dimension;
        within("continuous.sketch_dimension", sketch.into(), sketch >= 64, "at least 64")?;
        let reference = self.reference_rounds;
        within("continuous.reference_rounds", reference.into(), reference >= 20, "at least 20")
    }

    /// The promised wait among so many nodes.
    pub fn worst_wait(&self, nodes: usize, k: u32) -> f64 {
        if self.worst_wait > 0.0 {
            return self.worst_wait;
        }
        WORST_WAIT_RATIO * (nodes as f64 / f64::from(k)).max(1.0)
    }
}
