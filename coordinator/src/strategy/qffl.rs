//! q-FFL (Li, Sanjabi, Beirami and Smith, *Fair Resource Allocation in Federated Learning*, ICLR 2020), by q-FedSGD.

use serde::{Deserialize, Serialize};

use super::{Baseline, Harvested, Merged, Strategy};

/// Losses below this count as this: F^{q−1} is infinite at 0.
const LOSS_MIN: f64 = 1e-10;

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
        let each = round.updates.iter().zip(round.losses).zip(round.shares);
        let (slopes, bounds): (Vec<f64>, Vec<f64>) = each
            .map(|((update, loss), share)| {
                let loss = loss.max(LOSS_MIN);
                let square: f64 = update.iter().map(|value| f64::from(*value).powi(2)).sum();
                let bound = q * loss.powf(q - 1.0) * square + loss.powf(q) / round.learning_rate;
                (share * loss.powf(q), share * bound)
            })
            .unzip();
        let step = 1.0 / bounds.iter().sum::<f64>();
        Merged::shared(round.latest.stepped(round.updates, &slopes, step))
    }
}
