//! An entry of the journal.

use serde::{Deserialize, Serialize};

use crate::reading::InputBatch;

/// One entry of a node's journal: a batch of data that arrived after the node was last saved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// The number of the batch, so that none is added twice.
    pub number: u64,
    /// Rounds whose readings a source that is paced by rounds has delivered.
    pub rounds_read: u32,
    /// The side series that the data are of; none for the household's load.
    pub side: Option<String>,
    /// The data.
    pub batch: InputBatch,
}
