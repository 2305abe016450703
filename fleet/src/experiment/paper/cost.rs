//! The time that trials take.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::data::Dataset;
use crate::experiment::setup::Setup;

/// Seconds of one core for the batch of one node in one round, online scores included: measured on one machine, for orders
/// of magnitude.
fn seconds_a_sample(dataset: Dataset) -> f64 {
    match dataset {
        Dataset::Mnist => 1.5e-3,
        Dataset::Cifar10 => 2e-3,
        Dataset::Pathmnist => 1.5e-3,
        Dataset::Electricity | Dataset::Meters => 1e-3,
        Dataset::Hft => 3e-4,
        Dataset::DayAhead | Dataset::Synthetic => 1e-4,
    }
}

/// Trials, each counted once, and their seconds on one core.
pub fn cost(setups: &[Setup]) -> (usize, f64) {
    let seconds = |setup: &Setup| {
        let samples = setup.nodes as f64 * setup.batch as f64 * f64::from(setup.rounds);
        let runs = if setup.foreknown().is_some() { 2.0 } else { 1.0 };
        runs * samples * seconds_a_sample(setup.dataset)
    };
    let unique: BTreeMap<PathBuf, f64> = setups.iter().map(|setup| (setup.path(), seconds(setup))).collect();
    (unique.len(), unique.values().sum())
}
