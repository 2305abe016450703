//! Learning alone: what collaboration must beat.

use evenhand_federation::strategy::{AggregatedModel, AggregationInput, Participation, Strategy};

/// θᵢ ← θᵢ − ηΔθᵢ for every node; θ stays as it was at the beginning.
#[derive(Debug, Clone, Copy)]
pub struct Standalone;

impl Strategy for Standalone {
    fn name(&self) -> &'static str {
        "standalone"
    }

    fn participation(&self) -> Participation {
        Participation::Everybody
    }

    fn aggregate(&mut self, round: &AggregationInput<'_>) -> AggregatedModel {
        AggregatedModel { latest: round.latest.clone(), node_models: round.local_steps() }
    }

    fn clone_box(&self) -> Box<dyn Strategy> {
        Box::new(*self)
    }
}
