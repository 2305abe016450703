//! From a plan to a fleet: which households, which model, which rules.

use std::sync::Arc;

use evenhand_fairness::Estimator;
use evenhand_federation::{self as federation, InitialModel, Rules};
use evenhand_models::{LoadOptions, Loss, Model, shipped};
use evenhand_node::source::household::{Household, HouseholdSettings};
use evenhand_node::window::SeriesSettings;
use evenhand_protocol::identity::{Digest, FederationId, NodeId};

use super::Plan;
use crate::FleetError;
use crate::observer::{Households, Observer};
use crate::rules;
use crate::transport::{Fleet, House};

/// Seconds between two readings.
const STEP_S: u32 = 1800;
/// Readings of a round: one day.
const READINGS_A_ROUND: usize = 48;
/// Steps the model looks back: half a day.
const LAGS: usize = 24;
/// η.
const LEARNING_RATE: f64 = 0.05;
/// Configuration files hold signed integers.
const SEED_MAX: u64 = i64::MAX as u64;
/// Up to so many nodes contributions are enumerated; beyond, they are estimated.
const EXACT_NODES_MAX: usize = 12;

impl Plan {
    /// The fleet, and somebody to watch it. `federation` is one level of the topics.
    pub fn fleet(&self, federation: FederationId) -> Result<(Fleet, Observer), FleetError> {
        let model = Model::load(shipped::ELECTRICITY_RNN, &LoadOptions::default())?;
        let blueprint = InitialModel {
            graph: Digest(model.digest()),
            onnx: shipped::ELECTRICITY_RNN.into(),
            weights: model.initial_weights().into(),
        };
        let series = SeriesSettings {
            step_s: STEP_S,
            lags: LAGS,
            history_steps: 4 * READINGS_A_ROUND,
            ..Default::default()
        };
        let houses: Vec<House> = (self.members.iter().enumerate())
            .map(|(index, member)| {
                let household = HouseholdSettings {
                    seed: self.settings.seed.wrapping_mul(1_000_003).wrapping_add(index as u64) & SEED_MAX,
                    noise: member.zeta,
                    step_s: STEP_S,
                    weather_seed: self.settings.seed & SEED_MAX,
                    ..Default::default()
                };
                Ok(House { id: NodeId::new(&member.id)?, household })
            })
            .collect::<Result<_, FleetError>>()?;
        let households = houses.iter().map(|house| Household::new(house.household.clone())).collect();
        let outlook = Households::new(households, &series, READINGS_A_ROUND, self.settings.seed);
        let initial = Arc::clone(&blueprint.weights);
        let observer = Observer::new(model, Loss::Mse, houses.len(), initial, Box::new(outlook));
        let fleet = Fleet {
            rules: Rules::new(self.rules(federation))?,
            blueprint,
            houses,
            series,
            readings_a_round: READINGS_A_ROUND,
        };
        Ok((fleet, observer))
    }

    fn rules(&self, name: FederationId) -> federation::FederationConfig {
        let nodes = self.members.len();
        let mut rules = rules::as_reported(&self.settings, name, nodes);
        rules.federation.strategy = self.strategy;
        rules.training.learning_rate = LEARNING_RATE;
        rules.training.samples_max = READINGS_A_ROUND as u32;
        rules.training.codec = self.codec;
        rules.contribution.estimator =
            if nodes <= EXACT_NODES_MAX { Estimator::Exact } else { Estimator::Permutation };
        rules.exploiting.sampler = self.sampler;
        rules
    }
}
