//! How stale each node's model has been.

use serde::{Deserialize, Serialize};

/// γᵢ,ₜ, the rounds since node i last received the model, followed over the rounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Staleness {
    rounds: u64,
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Node {
    current: u64,
    sum: u64,
    longest: u64,
    draws: u64,
}

impl Staleness {
    /// Everybody has just received the model.
    pub fn new(nodes: usize) -> Self {
        Self { rounds: 0, nodes: vec![Node::default(); nodes] }
    }

    /// Another round, in which these nodes received the model.
    pub fn observe(&mut self, drawn: &[usize]) {
        self.rounds += 1;
        for node in &mut self.nodes {
            node.current += 1;
        }
        for &node in drawn {
            self.nodes[node].current = 0;
            self.nodes[node].draws += 1;
        }
        for node in &mut self.nodes {
            node.sum += node.current;
            node.longest = node.longest.max(node.current);
        }
    }

    /// γᵢ now.
    pub fn current(&self) -> Vec<u64> {
        self.nodes.iter().map(|node| node.current).collect()
    }

    /// The longest each node has waited.
    pub fn longest(&self) -> Vec<u64> {
        self.nodes.iter().map(|node| node.longest).collect()
    }

    /// How often each node was drawn.
    pub fn draws(&self) -> Vec<u64> {
        self.nodes.iter().map(|node| node.draws).collect()
    }

    /// The mean of γᵢ over the rounds so far, the paper's measure.
    pub fn mean(&self) -> Vec<f64> {
        self.nodes.iter().map(|node| node.sum as f64 / self.rounds.max(1) as f64).collect()
    }

    /// Rounds for each time drawn, the published code's measure; infinite for a node never drawn.
    pub fn rounds_per_draw(&self) -> Vec<f64> {
        self.nodes.iter().map(|node| self.rounds as f64 / node.draws as f64).collect()
    }
}
