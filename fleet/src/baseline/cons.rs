//! Consensus: models of single nodes, pulled together.
//!
//! The elastic reading of the paper's "Cons" with λ = 0.3 (as in Zhang,
//! Choromanska and LeCun, *Deep Learning with Elastic Averaging SGD*, NeurIPS 2015), synchronous and with every node.

use evenhand_federation::strategy::{AggregatedModel, AggregationInput, Participation, Strategy};
use evenhand_federation::{NodeIndex, Weights};

/// λ: the share of the way to the mean that a model is pulled in each round.
const PULL: f64 = 0.3;

/// θᵢ ← (1 − λ)(θᵢ − ηΔθᵢ) + λ·mean over j of (θⱼ − ηΔθⱼ); θ is the mean, without nodes that were removed.
#[derive(Debug, Clone, Copy)]
pub struct Cons {
    pull: f64,
}

impl Default for Cons {
    fn default() -> Self {
        Self { pull: PULL }
    }
}

impl Strategy for Cons {
    fn name(&self) -> &'static str {
        "cons"
    }

    fn participation(&self) -> Participation {
        Participation::Everybody
    }

    fn aggregate(&mut self, round: &AggregationInput<'_>) -> AggregatedModel {
        let stepped = round.local_steps();
        let enrolled =
            NodeIndex::first(stepped.len()).zip(&stepped).filter(|(node, _)| round.is_enrolled(*node));
        let Some(mean) = mean(enrolled.map(|(_, model)| model)) else {
            return AggregatedModel { latest: round.latest.clone(), node_models: stepped };
        };
        let pulled = stepped.iter().map(|model| {
            let each = model.values().iter().zip(&mean);
            each.map(|(value, mean)| (1.0 - self.pull) * f64::from(*value) + self.pull * mean).collect()
        });
        let node_models = pulled.collect();
        AggregatedModel { latest: mean.into_iter().collect(), node_models }
    }

    fn clone_box(&self) -> Box<dyn Strategy> {
        Box::new(*self)
    }
}

/// The mean of models, summed in f64 in their order; none of none.
fn mean<'a>(models: impl Iterator<Item = &'a Weights>) -> Option<Vec<f64>> {
    let mut sum = Vec::new();
    let mut count = 0.0;
    for model in models {
        sum.resize(model.values().len(), 0.0f64);
        for (sum, value) in sum.iter_mut().zip(model.values()) {
            *sum += f64::from(*value);
        }
        count += 1.0;
    }
    sum.iter_mut().for_each(|sum| *sum /= count);
    (count > 0.0).then_some(sum)
}
