//! Staleness of each node over the rounds of a simulated draw.

use super::assert_close;

/// γᵢ,ₜ, the rounds since node i last received the model, followed over the rounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StalenessTracker {
    rounds: u64,
    nodes: Vec<NodeStaleness>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct NodeStaleness {
    current: u64,
    sum: u64,
    longest: u64,
    draws: u64,
}

impl StalenessTracker {
    /// Everybody has just received the model.
    pub(crate) fn new(nodes: usize) -> Self {
        Self { rounds: 0, nodes: vec![NodeStaleness::default(); nodes] }
    }

    /// Another round, in which these nodes received the model.
    pub(crate) fn observe(&mut self, drawn: &[usize]) {
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
    pub(crate) fn current(&self) -> Vec<u64> {
        self.nodes.iter().map(|node| node.current).collect()
    }

    /// The longest each node has waited.
    pub(crate) fn longest(&self) -> Vec<u64> {
        self.nodes.iter().map(|node| node.longest).collect()
    }

    /// The draws of each node.
    pub(crate) fn draws(&self) -> Vec<u64> {
        self.nodes.iter().map(|node| node.draws).collect()
    }

    /// The mean of γᵢ over the rounds so far, the paper's measure.
    pub(crate) fn mean(&self) -> Vec<f64> {
        self.nodes.iter().map(|node| node.sum as f64 / self.rounds.max(1) as f64).collect()
    }

    /// Rounds for each time drawn, the published code's measure; infinite for a node never drawn.
    pub(crate) fn rounds_per_draw(&self) -> Vec<f64> {
        self.nodes.iter().map(|node| self.rounds as f64 / node.draws as f64).collect()
    }
}

#[test]
fn staleness_follows_the_rounds() {
    let mut staleness = StalenessTracker::new(3);
    for drawn in [&[0, 1][..], &[0], &[], &[1], &[0]] {
        staleness.observe(drawn);
    }
    // By round: node 0: 0 0 1 2 0; node 1: 0 1 2 0 1; node 2: 1 2 3 4 5.
    assert_eq!(staleness.current(), [0, 1, 5]);
    assert_eq!(staleness.longest(), [2, 2, 5]);
    assert_eq!(staleness.draws(), [3, 2, 0]);
    assert_close(&staleness.mean(), &[0.6, 0.8, 3.0], 1e-12);
    assert_close(&staleness.rounds_per_draw(), &[5.0 / 3.0, 2.5, f64::INFINITY], 1e-12);
}
