//! The ceiling: the same network, trained by Adam on everybody's readings in one place.

use evenhand_models::ModelError;
use evenhand_node::forecast::LeadRows;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::learner::HouseholdLearner;
use super::network::Network;
use super::settings::YearSettings;

const RATE: f32 = 2e-3;
const STEPS: usize = 20;
const HOMES_A_STEP: usize = 16;
const ROWS_A_HOME: usize = 32;

/// A model for all, with the state of Adam.
pub(super) struct PooledModel {
    pub(super) weights: Vec<f32>,
    mean: Vec<f32>,
    square: Vec<f32>,
    steps: i32,
    rng: ChaCha8Rng,
}

impl PooledModel {
    pub(super) fn new(initial: &[f32], seed: u64) -> Self {
        let zeros = vec![0.0; initial.len()];
        let rng = ChaCha8Rng::seed_from_u64(seed);
        Self { weights: initial.to_vec(), mean: zeros.clone(), square: zeros, steps: 0, rng }
    }

    /// A round's training, on the last readings of those who have joined.
    pub(super) fn learn(
        &mut self,
        now: usize,
        homes: &mut [HouseholdLearner],
        settings: &YearSettings,
        network: &Network,
    ) -> Result<(), ModelError> {
        let mut ready: Vec<&mut HouseholdLearner> =
            homes.iter_mut().filter(|home| home.has_rows(now)).collect();
        if ready.is_empty() {
            return Ok(());
        }
        for _ in 0..STEPS {
            let mut batch = LeadRows::default();
            for _ in 0..HOMES_A_STEP {
                let home = self.rng.random_range(0..ready.len());
                let rows = ready[home].rows(now, ROWS_A_HOME, settings.history_days as usize);
                batch.inputs.extend(rows.inputs);
                batch.targets.extend(rows.targets);
            }
            if !batch.is_empty() {
                let gradient = network.gradient(&self.weights, batch)?.gradient;
                self.step(&gradient);
            }
        }
        Ok(())
    }

    fn step(&mut self, gradient: &[f32]) {
        self.steps += 1;
        let (first, second) = (1.0 - 0.9f32.powi(self.steps), 1.0 - 0.999f32.powi(self.steps));
        let memory = self.mean.iter_mut().zip(&mut self.square);
        for ((weight, (mean, square)), slope) in self.weights.iter_mut().zip(memory).zip(gradient) {
            *mean += 0.1 * (slope - *mean);
            *square += 0.001 * (slope * slope - *square);
            *weight -= RATE * (*mean / first) / ((*square / second).sqrt() + 1e-8);
        }
    }
}
