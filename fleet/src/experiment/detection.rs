//! Answers that the coordinator took for copies, counted over a trial.

use evenhand_federation::{ClosedRound, MeasureResponse};
use serde::{Deserialize, Serialize};

/// Counts over nodes and rounds; where all nodes are honest, they are false alarms.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetectionCounts {
    /// Answers that were compared: one a node and round that sent a reference gradient.
    pub answers: u64,
    /// Those that were taken for an earlier one again.
    pub repeated: u64,
    /// Those of nodes that had a twin after the round.
    pub twins: u64,
    /// By position: true for a node with an answer that was taken for an earlier one.
    pub nodes_repeated: Vec<bool>,
    /// By position: true for a node that had a twin after some round.
    pub nodes_twins: Vec<bool>,
}

impl DetectionCounts {
    /// Adds a closed round.
    pub fn add(&mut self, closed: &ClosedRound) {
        let nodes = closed.nodes.len().max(self.nodes_twins.len());
        self.nodes_repeated.resize(nodes, false);
        self.nodes_twins.resize(nodes, false);
        for (position, node) in closed.nodes.iter().enumerate() {
            let repeated = node.measured == MeasureResponse::Repeated;
            if repeated || matches!(node.measured, MeasureResponse::Measured { .. }) {
                self.answers += 1;
                self.repeated += u64::from(repeated);
                self.twins += u64::from(node.has_twin);
                self.nodes_repeated[position] |= repeated;
                self.nodes_twins[position] |= node.has_twin;
            }
        }
    }

    /// The share of answers that were taken for an earlier one; none without answers.
    pub fn repeated_share(&self) -> Option<f64> {
        (self.answers > 0).then(|| self.repeated as f64 / self.answers as f64)
    }

    /// The share of answers of nodes that had a twin; none without answers.
    pub fn twin_share(&self) -> Option<f64> {
        (self.answers > 0).then(|| self.twins as f64 / self.answers as f64)
    }

    /// The share of nodes that were taken for a copy in any round, of themselves or of others; none without answers.
    pub fn flagged_nodes(&self) -> Option<f64> {
        let flagged =
            self.nodes_repeated.iter().zip(&self.nodes_twins).filter(|(one, other)| **one || **other);
        (self.answers > 0).then(|| flagged.count() as f64 / self.nodes_twins.len() as f64)
    }
}
