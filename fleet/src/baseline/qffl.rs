//! q-FFL (Li, Sanjabi, Beirami and Smith, *Fair Resource Allocation in Federated Learning*, ICLR 2020), by q-FedSGD.

use evenhand_federation::NodeIndex;
use evenhand_federation::strategy::{AggregatedModel, AggregationInput, Participation, Strategy};

/// q: the weight of a high loss, as published; 0 is FedAvg.
const Q: f64 = 0.1;

/// Losses below this share of the round's highest count as this share: F^{q−1} is infinite at 0, and nodes report their
/// losses themselves.
const LOSS_MIN: f64 = 1e-3;

/// Minimises Σ pᵢFᵢ^{q+1}/(q+1): nodes with higher losses weigh more. As published, nodes are drawn with probability pᵢ
/// and then weigh alike, where the shares pᵢ are known; otherwise they are drawn uniformly and weigh by pᵢ.
#[derive(Debug, Clone)]
pub struct QFfl {
    q: f64,
    /// pᵢ by index; empty where they are not known.
    shares: Vec<f64>,
}

impl QFfl {
    /// q-FFL with another q than the published one.
    pub fn new(q: f64) -> Self {
        Self { q, shares: Vec::new() }
    }

    /// The published q-FFL among nodes with these shares of all samples.
    pub fn with_shares(shares: Vec<f64>) -> Self {
        Self { q: Q, shares }
    }
}

impl Default for QFfl {
    fn default() -> Self {
        Self::new(Q)
    }
}

impl Strategy for QFfl {
    fn name(&self) -> &'static str {
        "q-ffl"
    }

    fn participation(&self) -> Participation {
        Participation::Draw
    }

    /// pᵢ, scaled to sum to 1 over these nodes.
    fn sampling_probabilities(&self, nodes: &[NodeIndex], _standings: &[f64], _temperature: f64) -> Vec<f64> {
        let share = |node: &NodeIndex| self.shares.get(node.get()).copied().unwrap_or(0.0);
        let sum: f64 = nodes.iter().map(share).sum();
        let uniform = 1.0 / nodes.len() as f64;
        nodes.iter().map(|node| if sum > 0.0 { share(node) / sum } else { uniform }).collect()
    }

    /// # Formula
    /// θ_t = θ_{t−1} − Σ pᵢFᵢ^qΔθᵢ / Σ pᵢhᵢ with hᵢ = qFᵢ^{q−1}‖Δθᵢ‖² + LFᵢ^q, and L = 1/η as an upper bound of the
    /// Lipschitz constant; without pᵢ where nodes were drawn by it. With q = 0 that is FedAvg.
    fn aggregate(&mut self, round: &AggregationInput<'_>) -> AggregatedModel {
        let q = self.q;
        // In units of the highest loss, which cancels out: so no power can overflow.
        let most = round.losses.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let each = round.updates.iter().zip(round.losses).zip(round.weights);
        let (slopes, bounds): (Vec<f64>, Vec<f64>) = each
            .map(|((update, loss), share)| {
                let share = if self.shares.is_empty() { *share } else { 1.0 };
                let loss = (loss / most).max(LOSS_MIN);
                let square: f64 = update.iter().map(|value| f64::from(*value).powi(2)).sum();
                let bound = (q * square / (loss * most) + 1.0 / round.learning_rate) * loss.powf(q);
                (share * loss.powf(q), share * bound)
            })
            .unzip();
        let step = round.arrived_share / bounds.iter().sum::<f64>();
        AggregatedModel::common(round.latest.stepped(round.updates, &slopes, step))
    }

    fn clone_box(&self) -> Box<dyn Strategy> {
        Box::new(self.clone())
    }
}
