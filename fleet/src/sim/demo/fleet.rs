//! The fleet of a demo: households, model and rules.

use std::sync::Arc;

use evenhand_federation::InitialModel;
use evenhand_models::{LoadOptions, Loss, Model, shipped};
use evenhand_node::source::household::{Household, HouseholdConfig};
use evenhand_node::window::{SampleFormat, SeriesConfig};
use evenhand_protocol::identity::{Digest, FederationId, NodeId};

use super::DemoPlan;
use super::plan::READINGS_A_ROUND;
use crate::sim::SimulationError;
use crate::sim::fleet::{HouseholdFleet, HouseholdNode};
use crate::sim::online::{HouseholdEvaluation, OnlineEvaluator};

/// Seconds between two readings.
const STEP_S: u32 = 1800;
/// Configuration files hold signed integers.
const SEED_MAX: u64 = i64::MAX as u64;

impl DemoPlan {
    /// The fleet, and the evaluator of its models. `federation` is one level of the topics.
    pub fn fleet(
        &self,
        federation: FederationId,
    ) -> Result<(HouseholdFleet, OnlineEvaluator), SimulationError> {
        let model = Model::load(shipped::LOAD_QUANTILES, &LoadOptions::default())?;
        let initial_model = InitialModel {
            graph: Digest(model.digest()),
            onnx: shipped::LOAD_QUANTILES.into(),
            weights: model.initial_weights().into(),
        };
        let series = SeriesConfig {
            samples: SampleFormat::DayAhead,
            step_s: STEP_S,
            history_steps: 4 * READINGS_A_ROUND,
            ..Default::default()
        };
        let nodes: Vec<HouseholdNode> = (self.members.iter().enumerate())
            .map(|(index, member)| {
                let household = HouseholdConfig {
                    seed: self.seed().wrapping_mul(1_000_003).wrapping_add(index as u64) & SEED_MAX,
                    noise: member.zeta,
                    step_s: STEP_S,
                    weather_seed: self.seed() & SEED_MAX,
                    ..Default::default()
                };
                Ok(HouseholdNode { id: NodeId::new(&member.id)?, household })
            })
            .collect::<Result<_, SimulationError>>()?;
        let households = nodes.iter().map(|node| Household::new(node.household.clone())).collect();
        let evaluation = HouseholdEvaluation::new(households, &series, READINGS_A_ROUND, self.seed());
        let initial = Arc::clone(&initial_model.weights);
        let evaluator =
            OnlineEvaluator::new(model, Loss::Pinball, nodes.len(), initial, Box::new(evaluation));
        let fleet = HouseholdFleet {
            rules: self.rules(federation)?,
            strategy: self.strategy,
            initial_model,
            nodes,
            series,
            readings_a_round: READINGS_A_ROUND,
            forecasts: true,
        };
        Ok((fleet, evaluator))
    }
}
