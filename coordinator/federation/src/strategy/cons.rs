//! Consensus: models of their own, pulled together.
//!
//! The paper names this baseline "Cons" with λ = 0.3 and no equation; this is the elastic reading of it (as in Zhang,
//! Choromanska and LeCun, *Deep Learning with Elastic Averaging SGD*, NeurIPS 2015), synchronous and with every node.

use serde::{Deserialize, Serialize};

use super::{Baseline, Harvested, Merged, Strategy, mean, weights};

/// θᵢ ← (1 − λ)(θᵢ − ηΔθᵢ) + λ·mean over j of (θⱼ − ηΔθⱼ); θ is the mean, to which nobody who was shut out belongs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cons {
    pull: f64,
}

impl Cons {
    pub(super) fn new(baseline: &Baseline) -> Self {
        Self { pull: baseline.pull }
    }
}

impl Strategy for Cons {
    fn asks_everybody(&self) -> bool {
        true
    }

    fn merge(&mut self, round: &Harvested<'_>) -> Merged {
        let stepped = round.stepped_alone();
        let staying = stepped.iter().enumerate().filter(|(column, _)| round.stays(*column));
        let Some(mean) = mean(staying.map(|(_, own)| own)) else {
            return Merged { latest: round.latest.clone(), own: stepped };
        };
        let pulled = stepped.iter().map(|own| {
            let each = own.values().iter().zip(&mean);
            weights(each.map(|(value, mean)| (1.0 - self.pull) * f64::from(*value) + self.pull * mean))
        });
        let own = pulled.collect();
        Merged { latest: weights(mean.into_iter()), own }
    }
}
