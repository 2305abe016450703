//! What came in, as it is written down.

use serde::{Deserialize, Serialize};

use crate::reading::Intake;

/// One line of a node's journal: what came in after the node was last saved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Counts what came in, so that nothing is taken in twice.
    pub number: u64,
    /// Rounds whose readings a source that is paced by rounds has handed over.
    pub rounds_read: u32,
    /// What came in.
    pub intake: Intake,
}
