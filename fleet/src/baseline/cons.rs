//! Cons: FedAvg with a penalty on differences between nodes' losses, as Lin et al. (ICML 2023) extend it for comparison.

use evenhand_federation::strategy::{AggregatedModel, AggregationInput, Participation, Strategy};

/// λ, as published.
const LAMBDA: f64 = 0.3;

/// Minimises Σ pᵢLᵢ + (λ/n²) ΣᵢΣⱼ (Lᵢ − Lⱼ)² over one common model, with the n nodes of the round. Draws uniformly, from
/// the first round on.
///
/// Departs from the paper: its double sum has no 1/n². With it, and losses as means over a batch, the penalty outweighs the
/// objective a hundredfold at n = 12 and nothing is learned; the paper says no scale at which its λ holds.
#[derive(Debug, Clone, Copy)]
pub struct Cons {
    lambda: f64,
}

impl Cons {
    /// Cons with another λ than the published one.
    pub fn new(lambda: f64) -> Self {
        Self { lambda }
    }
}

impl Default for Cons {
    fn default() -> Self {
        Self::new(LAMBDA)
    }
}

impl Strategy for Cons {
    fn name(&self) -> &'static str {
        "cons"
    }

    fn participation(&self) -> Participation {
        Participation::Draw
    }

    /// # Formula
    /// θ_t = θ_{t−1} − η Σ wⱼΔθⱼ with wⱼ = pⱼ + (4λ/n)(Lⱼ − L̄), which is the gradient Σ pⱼΔθⱼ +
    /// (2λ/n²) ΣⱼΣₖ (Lⱼ − Lₖ)(Δθⱼ − Δθₖ).
    fn aggregate(&mut self, round: &AggregationInput<'_>) -> AggregatedModel {
        let count = round.losses.len() as f64;
        let mean = round.losses.iter().sum::<f64>() / count;
        let each = round.weights.iter().zip(round.losses);
        let weights: Vec<f64> = each
            .map(|(share, loss)| share * round.arrived_share + 4.0 * self.lambda / count * (loss - mean))
            .collect();
        AggregatedModel::common(round.latest.stepped(round.updates, &weights, round.learning_rate))
    }

    fn clone_box(&self) -> Box<dyn Strategy> {
        Box::new(*self)
    }
}
