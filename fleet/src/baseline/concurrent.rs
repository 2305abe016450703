//! Contributions measured while they already decide the draws, as the paper tries it to show that it does not work.

use evenhand_federation::NodeIndex;
use evenhand_federation::strategy::{
    AggregatedModel, AggregationInput, MemoryError, Participation, Strategy, decode_memory, encode_memory,
};

/// Draws with probabilities in proportion to ψ from the first round on; ψᵢ is the mean of φᵢ over the rounds in which node i
/// was drawn. Nodes that were not yet drawn count as the mean of the others.
#[derive(Debug, Clone, Default)]
pub struct Concurrent {
    /// By index: rounds in which the node was measured, and ψᵢ.
    means: Vec<(u32, f64)>,
}

impl Concurrent {
    fn standing(&self, node: NodeIndex) -> Option<f64> {
        self.means.get(node.get()).filter(|(rounds, _)| *rounds > 0).map(|(_, mean)| *mean)
    }
}

impl Strategy for Concurrent {
    fn name(&self) -> &'static str {
        "concurrent"
    }

    fn participation(&self) -> Participation {
        Participation::DrawMeasured
    }

    fn sampling_probabilities(&self, nodes: &[NodeIndex], _standings: &[f64], _temperature: f64) -> Vec<f64> {
        let known: Vec<f64> = nodes.iter().filter_map(|node| self.standing(*node)).collect();
        let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
        let weight = |node: &NodeIndex| self.standing(*node).unwrap_or(mean).max(0.0);
        let sum: f64 = nodes.iter().map(weight).sum();
        let uniform = 1.0 / nodes.len() as f64;
        nodes.iter().map(|node| if sum > 0.0 { weight(node) / sum } else { uniform }).collect()
    }

    fn node_score(&self, node: NodeIndex) -> Option<f64> {
        self.standing(node)
    }

    fn aggregate(&mut self, round: &AggregationInput<'_>) -> AggregatedModel {
        let known = self.means.len().max(round.members);
        self.means.resize(known, (0, 0.0));
        for (node, value) in round.nodes.iter().zip(round.contributions.unwrap_or_default()) {
            let (rounds, mean) = &mut self.means[node.get()];
            *rounds += 1;
            *mean += (value - *mean) / f64::from(*rounds);
        }
        AggregatedModel::common(round.averaged())
    }

    fn save(&self) -> Vec<u8> {
        encode_memory(&self.means)
    }

    fn restore(&mut self, memory: &[u8]) -> Result<(), MemoryError> {
        self.means = decode_memory(self.name(), memory)?;
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn Strategy> {
        Box::new(self.clone())
    }
}
