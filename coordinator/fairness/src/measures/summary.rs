//! The distribution of a score over the nodes.

use serde::{Deserialize, Serialize};

/// A score over the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The mean.
    pub mean: f64,
    /// The worst-off for scores that should be high.
    pub min: f64,
    /// The best-off for scores that should be high.
    pub max: f64,
    /// The standard deviation over the nodes (all of them, so divided by N): how equal they are.
    pub std: f64,
}

impl Summary {
    /// The summary of some values; none of no values.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        Some(Self {
            mean,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            std: (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt(),
        })
    }
}
