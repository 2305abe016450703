//! GoG (Nagalapatti and Narayanam, *Game of Gradients: Mitigating Irrelevant Clients in Federated Learning*, AAAI 2021), its
//! algorithm S-FedAvg.

use std::fmt::Debug;
use std::sync::Arc;

use evenhand_fairness::measures::Summary;
use evenhand_fairness::sampling_probabilities;
use evenhand_federation::strategy::{
    AggregatedModel, AggregationInput, MemoryError, Participation, Strategy, decode_memory, encode_memory,
};
use evenhand_federation::{NodeIndex, Weights};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// a: the share of a node's relevance that stays from round to round, as published.
const DECAY: f64 = 0.75;

/// Temperature of the draw, as published.
const TEMPERATURE: f64 = 1.0;

/// Random orders a round with validation data, each followed by its reverse: steps are so short that updates hardly interact.
const ORDERS: usize = 1;

/// Clean samples of the server, on which coalitions of updates are judged.
pub trait Validation: Debug + Send + Sync {
    /// The loss of each model; none if one cannot be computed.
    fn losses(&self, models: &[Weights]) -> Option<Vec<f64>>;
}

/// Draws by relevance, which follows the Shapley values of the drawn nodes' updates, from the first round on.
#[derive(Debug, Clone)]
pub struct Gog {
    temperature: f64,
    validation: Option<Arc<dyn Validation>>,
    seed: u64,
    memory: GogMemory,
}

/// What is known after a round.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
struct GogMemory {
    /// By index.
    relevances: Vec<f64>,
    /// Rounds that were judged on validation data.
    judged: u64,
}

impl Gog {
    /// GoG without validation data, with another temperature of the draw than the published one.
    pub fn with_temperature(temperature: f64) -> Self {
        Self { temperature, validation: None, seed: 0, memory: GogMemory::default() }
    }

    /// GoG with validation data; the seed is that of its random orders.
    pub fn with_validation(validation: Arc<dyn Validation>, seed: u64) -> Self {
        Self { validation: Some(validation), seed, ..Self::default() }
    }

    /// φᵢ of the updates of a round in the game U(S) = loss of θ_{t−1} − loss of θ_{t−1} after the mean update of S, by
    /// random orders and their reverses; none where a loss is no number.
    fn judged(&mut self, round: &AggregationInput<'_>) -> Option<Vec<f64>> {
        let validation = self.validation.as_ref()?;
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(self.memory.judged);
        self.memory.judged += 1;
        let count = round.updates.len();
        let mut orders = Vec::with_capacity(2 * ORDERS);
        let mut order: Vec<usize> = (0..count).collect();
        for _ in 0..ORDERS {
            order.shuffle(&mut rng);
            orders.push(order.clone());
            orders.push(order.iter().rev().copied().collect());
        }
        let mut values = vec![0.0; count];
        let before = *validation.losses(std::slice::from_ref(round.latest))?.first()?;
        for order in &orders {
            let models: Vec<Weights> = (1..=count).map(|size| moved(round, &order[..size])).collect();
            let mut last = before;
            for (update, loss) in order.iter().zip(validation.losses(&models)?) {
                values[*update] += (last - loss) / orders.len() as f64;
                last = loss;
            }
        }
        values.iter().all(|value| value.is_finite()).then_some(values)
    }
}

/// θ_{t−1} after the mean of some updates, by their shares.
fn moved(round: &AggregationInput<'_>, coalition: &[usize]) -> Weights {
    let sum: f64 = coalition.iter().map(|at| round.weights[*at]).sum();
    let (updates, weights): (Vec<&[f32]>, Vec<f64>) =
        coalition.iter().map(|at| (round.updates[*at], round.weights[*at] / sum)).unzip();
    round.latest.stepped(&updates, &weights, round.learning_rate)
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
        match self.validation {
            Some(_) => Participation::Draw,
            None => Participation::DrawMeasured,
        }
    }

    /// softmax(relevance / temperature), whatever the standings: there are none.
    ///
    /// Departs from the paper where there are validation data: its temperature of 1 leaves the draw uniform to within a
    /// percent, since one update of twelve changes the loss by some thousandths. Here it is the deviation of the relevances.
    fn sampling_probabilities(&self, nodes: &[NodeIndex], _standings: &[f64], _temperature: f64) -> Vec<f64> {
        let relevances: Vec<f64> = nodes.iter().map(|node| self.node_score(*node).unwrap_or(0.0)).collect();
        let spread = Summary::of(&relevances).map(|over| over.std).filter(|spread| *spread > 0.0);
        let unit = spread.filter(|_| self.validation.is_some()).unwrap_or(1.0);
        sampling_probabilities(&relevances, self.temperature * unit)
    }

    fn node_score(&self, node: NodeIndex) -> Option<f64> {
        self.memory.relevances.get(node.get()).copied()
    }

    /// # Formula
    /// For the drawn nodes, relevanceᵢ ← a·relevanceᵢ + (1 − a)·φᵢ, with φᵢ = 0 without an update, and
    /// θ_t = θ_{t−1} − η Σ pᵢΔθᵢ.
    ///
    /// Departs from the paper where there are no validation data: φᵢ is then by the federation's own utility. A round in
    /// which nothing could be measured changes no relevance.
    fn aggregate(&mut self, round: &AggregationInput<'_>) -> AggregatedModel {
        let known = self.memory.relevances.len().max(round.members);
        self.memory.relevances.resize(known, 0.0);
        let judged = self.judged(round);
        if let Some(values) = judged.as_deref().or(round.contributions) {
            for node in round.asked {
                self.memory.relevances[node.get()] *= DECAY;
            }
            for (node, value) in round.nodes.iter().zip(values) {
                self.memory.relevances[node.get()] += (1.0 - DECAY) * value;
            }
        }
        AggregatedModel::common(round.averaged())
    }

    fn save(&self) -> Vec<u8> {
        encode_memory(&self.memory)
    }

    fn restore(&mut self, memory: &[u8]) -> Result<(), MemoryError> {
        self.memory = decode_memory(self.name(), memory)?;
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn Strategy> {
        Box::new(self.clone())
    }
}
