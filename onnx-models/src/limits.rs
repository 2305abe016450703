//! Limits on the resources that a file from outside may use.

use crate::error::{ModelError, Result};

/// Bounds on what a file, and a run of it, may use. Everything is checked before it is allocated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelLimits {
    /// Size of the file.
    pub file_bytes_max: usize,
    /// Memory the decoded file may take.
    pub decoded_bytes_max: usize,
    /// Nodes in the graph.
    pub nodes_max: usize,
    /// Elements of any one tensor, in the file or computed.
    pub tensor_elements_max: usize,
    /// Memory for all the values computed from one batch; training holds about twice as much.
    pub activation_bytes_max: usize,
    /// Dimensions of any one tensor.
    pub rank_max: usize,
}

impl Default for ModelLimits {
    fn default() -> Self {
        ModelLimits {
            file_bytes_max: 64 << 20,
            decoded_bytes_max: 192 << 20,
            nodes_max: 20_000,
            tensor_elements_max: 64 << 20,
            activation_bytes_max: 1 << 30,
            rank_max: 8,
        }
    }
}

impl ModelLimits {
    pub(crate) fn check(what: &str, found: usize, limit: usize, name: &'static str) -> Result<()> {
        if found <= limit {
            return Ok(());
        }
        Err(ModelError::Limit { what: what.to_owned(), found: found as u64, limit: limit as u64, name })
    }
}
