//! `[state]`: the state folder.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Persistent state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StateConfig {
    /// The folder of the federation's state; "" stores nothing, and a coordinator that stops cannot resume.
    pub folder: PathBuf,
    /// Updates of at least so many last rounds are stored, so that `audit` can recompute these rounds; 0 stores all.
    pub keep_rounds: u32,
}

impl Default for StateConfig {
    fn default() -> Self {
        Self { folder: "evenhand-state".into(), keep_rounds: 1000 }
    }
}

impl StateConfig {
    pub(super) const SOURCE: &str = include_str!("state.rs");
}
