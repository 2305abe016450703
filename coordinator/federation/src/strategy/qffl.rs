//! q-FFL (Li, Sanjabi, Beirami and Smith, *Fair Resource Allocation in Federated Learning*, ICLR 2020), by q-FedSGD.

use serde::{Deserialize, Serialize};

use super::{Baseline, Harvested, Merged, Strategy};

/// Losses below this share of the round's highest count as this share: F^{q−1} is infinite at 0, and nodes report their
/// losses themselves.
const LOSS_MIN: f64 = 1e-3;

/// Minimises Σ pᵢFᵢ^{q+1}/(q+1): nodes with higher losses weigh more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QFfl {
    q: f64,
}

impl QFfl {
    pub(super) fn new(baseline: &Baseline) -> Self {
        Self { q: baseline.q }
    }
}

impl Strategy for QFfl {
    /// # Formula
    /// θ_t = θ_{t−1} − Σ pᵢFᵢ^qΔθᵢ / Σ pᵢhᵢ with hᵢ = qFᵢ^{q−1}‖Δθᵢ‖² + LFᵢ^q, and L = 1/η as an upper bound of the
    /// Lipschitz constant. With q = 0 that is FedAvg.
    fn merge(&mut self, round: &Harvested<'_>) -> Merged {
        let q = self.q;
        // In units of the highest loss, which cancels out: so no power can overflow.
        let most = round.losses.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let each = round.updates.iter().zip(round.losses).zip(round.shares);
        let (slopes, bounds): (Vec<f64>, Vec<f64>) = each
            .map(|((update, loss), share)| {
                let loss = (loss / most).max(LOSS_MIN);
                let square: f64 = update.iter().map(|value| f64::from(*value).powi(2)).sum();
                let bound = (q * square / (loss * most) + 1.0 / round.learning_rate) * loss.powf(q);
                (share * loss.powf(q), share * bound)
            })
            .unzip();
        let step = round.presence / bounds.iter().sum::<f64>();
        Merged::shared(round.latest.stepped(round.updates, &slopes, step))
    }
}
