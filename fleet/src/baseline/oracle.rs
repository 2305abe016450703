//! Draws by the true quality of data, which no federation knows: how fair draws could make models at best.

use evenhand_fairness::{sampling_probabilities, temperature_for_worst_wait};
use evenhand_federation::NodeIndex;
use evenhand_federation::strategy::{AggregatedModel, AggregationInput, Participation, Strategy};

/// Longest mean wait of the worst node, in units of that under equal odds: what the product promises by default.
const WORST_WAIT: f64 = 3.0;

/// Draws by ϱ = softmax(quality / β) from the first round on, with the lowest β at which nobody waits longer on average than
/// promised; θ_t = θ_{t−1} − η Σ pᵢΔθᵢ.
#[derive(Debug, Clone)]
pub struct Oracle {
    /// By index: the higher, the better.
    qualities: Vec<f64>,
    k: usize,
}

impl Oracle {
    /// Draws of k among nodes whose data have these qualities.
    pub fn new(qualities: Vec<f64>, k: usize) -> Self {
        Self { qualities, k }
    }
}

impl Strategy for Oracle {
    fn name(&self) -> &'static str {
        "oracle"
    }

    fn participation(&self) -> Participation {
        Participation::Draw
    }

    /// ϱ.
    fn sampling_probabilities(&self, nodes: &[NodeIndex], _standings: &[f64], _temperature: f64) -> Vec<f64> {
        let qualities: Vec<f64> =
            nodes.iter().map(|node| self.qualities.get(node.get()).copied().unwrap_or(0.0)).collect();
        let wait = WORST_WAIT * nodes.len() as f64 / self.k as f64;
        // Out of reach are only qualities that are not finite.
        let temperature = temperature_for_worst_wait(&qualities, self.k, wait.max(1.0)).unwrap_or(f64::MAX);
        sampling_probabilities(&qualities, temperature)
    }

    fn aggregate(&mut self, round: &AggregationInput<'_>) -> AggregatedModel {
        AggregatedModel::common(round.averaged())
    }

    fn clone_box(&self) -> Box<dyn Strategy> {
        Box::new(self.clone())
    }
}
