//! The next clean readings of simulated households, as rows of day-ahead forecasts.

use evenhand_models::{Batch, Targets};
use evenhand_node::source::household::Household;
use evenhand_node::window::{DayAheadWindow, SeriesConfig};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rayon::prelude::*;

use super::{EvaluationBatch, EvaluationSource};

/// Beyond so many samples the union is represented by a random part of it.
const SAMPLES_MAX: usize = 512;

/// The clean readings of all households of a fleet.
pub struct HouseholdEvaluation {
    households: Vec<EvaluatedHousehold>,
    readings_a_round: usize,
    rng: ChaCha8Rng,
}

struct EvaluatedHousehold {
    household: Household,
    window: DayAheadWindow,
    /// Number of its next reading.
    next: u64,
}

impl HouseholdEvaluation {
    /// HouseholdEvaluation before their first reading.
    pub fn new(
        households: Vec<Household>,
        series: &SeriesConfig,
        readings_a_round: usize,
        seed: u64,
    ) -> Self {
        let evaluated = |household| EvaluatedHousehold {
            household,
            window: DayAheadWindow::new(series.clone()),
            next: 0,
        };
        Self {
            households: households.into_iter().map(evaluated).collect(),
            readings_a_round,
            rng: ChaCha8Rng::seed_from_u64(seed),
        }
    }
}

impl EvaluationSource for HouseholdEvaluation {
    fn next(&mut self) -> Option<EvaluationBatch> {
        let count = self.readings_a_round;
        let parts: Vec<HouseholdBatch> =
            self.households.par_iter_mut().filter_map(|household| household.next_batch(count)).collect();
        let ahead = parts.into_iter().reduce(HouseholdBatch::unite)?;
        let batch =
            Batch { inputs: ahead.inputs, shape: ahead.shape, targets: Targets::Values(ahead.targets) };
        Some(EvaluationBatch { batch, scales: Vec::new() }.thinned(SAMPLES_MAX, &mut self.rng))
    }
}

impl EvaluatedHousehold {
    fn next_batch(&mut self, count: usize) -> Option<HouseholdBatch> {
        for index in self.next..self.next + count as u64 {
            self.window.add(self.household.clean(index));
        }
        self.next += count as u64;
        let taken = self.window.fresh_rows(count)?;
        self.window.mark_measured(taken.upto);
        let Targets::Values(targets) = taken.batch.targets else { return None };
        Some(HouseholdBatch { inputs: taken.batch.inputs, shape: taken.batch.shape, targets })
    }
}

/// The next rows of some households.
struct HouseholdBatch {
    inputs: Vec<f32>,
    shape: Vec<usize>,
    targets: Vec<f32>,
}

impl HouseholdBatch {
    /// All samples of both, which are of one shape.
    fn unite(mut self, more: Self) -> Self {
        self.shape[0] += more.shape[0];
        self.inputs.extend(more.inputs);
        self.targets.extend(more.targets);
        self
    }
}
