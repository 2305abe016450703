//! The step as the paper's text has it: weights over all nodes, so that k of N move the model k/N as far.

use evenhand_federation::NodeIndex;
use evenhand_federation::strategy::{
    AggregatedModel, AggregationInput, MemoryError, Participation, Strategy,
};

/// A strategy whose common step is Σ pᵢΔθᵢ over those that answered, with pᵢ of all samples of all nodes.
#[derive(Debug)]
pub struct PublishedStep {
    strategy: Box<dyn Strategy>,
    /// pᵢ by index; they sum to 1.
    shares: Vec<f64>,
}

impl PublishedStep {
    /// `strategy` with that step, among nodes with these shares of all samples.
    pub fn new(strategy: Box<dyn Strategy>, shares: Vec<f64>) -> Self {
        Self { strategy, shares }
    }
}

impl Strategy for PublishedStep {
    fn name(&self) -> &'static str {
        self.strategy.name()
    }

    fn participation(&self) -> Participation {
        self.strategy.participation()
    }

    fn sampling_probabilities(&self, nodes: &[NodeIndex], standings: &[f64], temperature: f64) -> Vec<f64> {
        self.strategy.sampling_probabilities(nodes, standings, temperature)
    }

    fn node_score(&self, node: NodeIndex) -> Option<f64> {
        self.strategy.node_score(node)
    }

    fn aggregate(&mut self, round: &AggregationInput<'_>) -> AggregatedModel {
        let known = round.nodes.iter().map(|node| self.shares.get(node.get()).copied().unwrap_or(0.0));
        self.strategy.aggregate(&AggregationInput { arrived_share: known.sum(), ..*round })
    }

    fn save(&self) -> Vec<u8> {
        self.strategy.save()
    }

    fn restore(&mut self, memory: &[u8]) -> Result<(), MemoryError> {
        self.strategy.restore(memory)
    }

    fn clone_box(&self) -> Box<dyn Strategy> {
        Box::new(Self { strategy: self.strategy.clone_box(), shares: self.shares.clone() })
    }
}
