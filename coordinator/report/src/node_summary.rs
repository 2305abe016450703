//! A run in figures, one row a node.

use crate::round_log::RoundLog;

/// One node over a whole run.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSummary {
    /// The node's name.
    pub id: String,
    /// ψ at the end.
    pub standing: f64,
    /// ϱ at the end.
    pub sampling_probability: f64,
    /// Rounds in which it received the model.
    pub drawn: u32,
    /// Rounds in which it received the model because it was drawn, after exploring.
    pub drawn_after_exploring: u32,
    /// Mean of its staleness over the rounds in which nodes were drawn.
    pub mean_staleness: f64,
    /// The longest it ever waited.
    pub longest_staleness: u32,
}

impl RoundLog {
    /// One row a node, by position; `staleness` is this log's.
    pub fn node_summaries(&self, staleness: &[Vec<u32>]) -> Vec<NodeSummary> {
        (0..self.nodes().len()).map(|node| self.node_summary(node, staleness)).collect()
    }

    fn node_summary(&self, node: usize, staleness: &[Vec<u32>]) -> NodeSummary {
        let last = self.rounds.last();
        let waits: Vec<u32> = (self.rounds.iter().zip(staleness))
            .filter(|(round, _)| !round.exploring)
            .map(|(_, waits)| waits[node])
            .collect();
        let received = || self.rounds.iter().filter(|round| round.drawn.binary_search(&node).is_ok());
        NodeSummary {
            id: self.nodes()[node].clone(),
            standing: last.map_or(0.0, |round| round.standings[node]),
            sampling_probability: last.map_or(0.0, |round| round.sampling_probabilities[node]),
            drawn: received().count() as u32,
            drawn_after_exploring: received().filter(|round| !round.exploring).count() as u32,
            mean_staleness: mean(waits.iter().copied().map(f64::from), waits.len()),
            longest_staleness: staleness.iter().map(|waits| waits[node]).max().unwrap_or(0),
        }
    }
}

/// The mean of `count` values; 0 if there are none.
pub fn mean(values: impl Iterator<Item = f64>, count: usize) -> f64 {
    if count == 0 { 0.0 } else { values.sum::<f64>() / count as f64 }
}
