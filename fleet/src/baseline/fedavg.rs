//! FedAvg (McMahan, Moore, Ramage, Hampson and Agüera y Arcas, AISTATS 2017): the baseline without incentives.

use evenhand_federation::strategy::{AggregatedModel, AggregationInput, Participation, Strategy};

/// Draws uniformly, from the first round on; θ_t = θ_{t−1} − η Σ pᵢΔθᵢ.
#[derive(Debug, Clone, Copy)]
pub struct FedAvg;

impl Strategy for FedAvg {
    fn name(&self) -> &'static str {
        "fedavg"
    }

    fn participation(&self) -> Participation {
        Participation::Draw
    }

    fn aggregate(&mut self, round: &AggregationInput<'_>) -> AggregatedModel {
        AggregatedModel::common(round.averaged())
    }

    fn clone_box(&self) -> Box<dyn Strategy> {
        Box::new(*self)
    }
}
