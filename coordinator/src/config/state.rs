//! `[state]`: the state folder.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Persistent state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StateConfig {
    /// The folder of the federation's state; "" stores nothing, and a coordinator that stops cannot resume.
    pub folder: PathBuf,
    /// Updates of at least so many last rounds are stored, and of at most twice as many, so that `audit` can recompute these
    /// rounds; 0 stores all. Updates say something about the readings they were made of: keep no more than audits need.
    pub keep_rounds: u32,
    /// false stores the digests of updates only: `audit` then checks what follows from the records alone.
    pub keep_updates: bool,
}

impl Default for StateConfig {
    fn default() -> Self {
        Self { folder: "evenhand-state".into(), keep_rounds: 100, keep_updates: true }
    }
}

impl StateConfig {
    pub(super) const SOURCE: &str = include_str!("state.rs");
}
