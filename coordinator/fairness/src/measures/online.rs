//! Online performance: how good the models were that the nodes held while the run went on.

use serde::{Deserialize, Serialize};

/// Running means of a score, one for each node: its model of round t on the batches of round t + 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Online {
    rounds: u64,
    means: Vec<f64>,
}

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

impl Online {
    /// No round yet.
    pub fn new(nodes: usize) -> Self {
        Self { rounds: 0, means: vec![0.0; nodes] }
    }

    /// Another round's score of each node.
    pub fn observe(&mut self, scores: &[f64]) {
        self.rounds += 1;
        for (mean, score) in self.means.iter_mut().zip(scores) {
            *mean += (score - *mean) / self.rounds as f64;
        }
    }

    /// Each node's mean score over the rounds.
    pub fn means(&self) -> &[f64] {
        &self.means
    }

    /// The mean scores over the nodes; none without nodes or rounds.
    pub fn summary(&self) -> Option<Summary> {
        if self.rounds == 0 { None } else { Summary::of(&self.means) }
    }
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
