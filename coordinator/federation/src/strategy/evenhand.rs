//! Fair yet asymptotically equal (Lin et al., ICML 2023).

use super::{AggregatedModel, AggregationInput, Participation, Strategy};
use crate::index::NodeIndex;

/// Explores until the standings ψ are settled, then draws by ϱ = softmax(ψ/β); θ_t = θ_{t−1} − η Σ pᵢΔθᵢ.
#[derive(Debug, Clone, Copy)]
pub struct Evenhand;

impl Strategy for Evenhand {
    fn name(&self) -> &'static str {
        "evenhand"
    }

    fn participation(&self) -> Participation {
        Participation::ExploreThenDraw
    }

    fn sampling_probabilities(&self, _nodes: &[NodeIndex], standings: &[f64], temperature: f64) -> Vec<f64> {
        evenhand_fairness::sampling_probabilities(standings, temperature)
    }

    fn aggregate(&mut self, round: &AggregationInput<'_>) -> AggregatedModel {
        AggregatedModel::common(round.averaged())
    }

    fn clone_box(&self) -> Box<dyn Strategy> {
        Box::new(*self)
    }
}
