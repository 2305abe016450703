//! Fair yet asymptotically equal (Lin et al., ICML 2023).

use serde::{Deserialize, Serialize};

use super::{Harvested, Merged, Strategy};
use evenhand_fairness as fairness;

/// Explores until the standings ψ are settled, then draws by ϱ = softmax(ψ/β); θ_t = θ_{t−1} − η Σ pᵢΔθᵢ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evenhand;

impl Strategy for Evenhand {
    fn explores(&self) -> bool {
        true
    }

    fn sampling_probabilities(&self, _columns: &[usize], standings: &[f64], temperature: f64) -> Vec<f64> {
        fairness::sampling_probabilities(standings, temperature)
    }

    fn merge(&mut self, round: &Harvested<'_>) -> Merged {
        Merged::shared(round.averaged())
    }
}
