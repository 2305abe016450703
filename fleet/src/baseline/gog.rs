//! GoG (Nagalapatti and Narayanam, *Game of Gradients: Mitigating Irrelevant Clients in Federated Learning*, AAAI 2021), its
//! algorithm S-FedAvg.

use evenhand_fairness::sampling_probabilities;
use evenhand_federation::NodeIndex;
use evenhand_federation::strategy::{
    AggregatedModel, AggregationInput, MemoryError, Participation, Strategy, decode_memory, encode_memory,
};

/// a: the share of a node's relevance that stays from round to round, as published.
const DECAY: f64 = 0.75;

/// Temperature of the draw, as published.
const TEMPERATURE: f64 = 1.0;

/// Draws by relevance, which follows the Shapley values of the drawn nodes' updates, from the first round on.
#[derive(Debug, Clone)]
pub struct Gog {
    temperature: f64,
    /// By index.
    relevances: Vec<f64>,
}

impl Gog {
    /// GoG with another temperature of the draw than the published one.
    pub fn with_temperature(temperature: f64) -> Self {
        Self { temperature, relevances: Vec::new() }
    }
}

impl Default for Gog {
    fn default() -> Self {
        Self::with_temperature(TEMPERATURE)
    }
}

impl Strategy for Gog {
    fn name(&self) -> &'static str {
        "gog"
    }

    fn participation(&self) -> Participation {
        Participation::DrawMeasured
    }

    /// softmax(relevance / temperature), whatever the standings: there are none.
    fn sampling_probabilities(&self, nodes: &[NodeIndex], _standings: &[f64], _temperature: f64) -> Vec<f64> {
        let relevances: Vec<f64> = nodes.iter().map(|node| self.node_score(*node).unwrap_or(0.0)).collect();
        sampling_probabilities(&relevances, self.temperature)
    }

    fn node_score(&self, node: NodeIndex) -> Option<f64> {
        self.relevances.get(node.get()).copied()
    }

    /// # Formula
    /// For the drawn nodes, relevanceᵢ ← a·relevanceᵢ + (1 − a)·φᵢ, with φᵢ = 0 without an update, and
    /// θ_t = θ_{t−1} − η Σ pᵢΔθᵢ.
    ///
    /// Departs from the paper: φᵢ is by the federation's own utility. S-FedAvg scores coalitions on validation data of
    /// the server. A round in which nothing could be measured changes no relevance.
    fn aggregate(&mut self, round: &AggregationInput<'_>) -> AggregatedModel {
        self.relevances.resize(self.relevances.len().max(round.members), 0.0);
        if let Some(contributions) = round.contributions {
            for node in round.asked {
                self.relevances[node.get()] *= DECAY;
            }
            for (node, value) in round.nodes.iter().zip(contributions) {
                self.relevances[node.get()] += (1.0 - DECAY) * value;
            }
        }
        AggregatedModel::common(round.averaged())
    }

    fn save(&self) -> Vec<u8> {
        encode_memory(&self.relevances)
    }

    fn restore(&mut self, memory: &[u8]) -> Result<(), MemoryError> {
        self.relevances = decode_memory(self.name(), memory)?;
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn Strategy> {
        Box::new(self.clone())
    }
}
