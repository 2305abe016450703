//! Meters whose days are corrupted, and rows of the forecasts that a node makes of them.

use std::ops::Range;

use evenhand_models::Targets;
use evenhand_node::forecast::LeadRows;
use evenhand_node::reading::Reading;
use evenhand_node::time_zone::LocalTimeZone;
use evenhand_node::window::{DayAheadWindow, SeriesConfig};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use rayon::prelude::*;

use super::noise::Noise;
use crate::data::SamplePool;
use crate::data::day_ahead::{DAY_STEPS, FIRST_MS, STEP_S};

/// Days that a node has read before the first round: its forecasts look back.
pub(super) const DAYS_BEFORE: u32 = 14;
/// Rows of each round that models are scored on and coalitions trained on.
const ROWS_A_ROUND: usize = 2 * DAY_STEPS;
/// A missing reading of a corrupted day is missing with this probability.
const MISSING: f64 = 0.5;

/// The window of a node, as it ships.
pub fn series_config() -> SeriesConfig {
    SeriesConfig {
        step_s: STEP_S,
        time_zone: LocalTimeZone::named("Europe/London").unwrap_or_default(),
        ..SeriesConfig::default()
    }
}

/// Mean and deviation of a household's readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LoadScale {
    mean: f32,
    deviation: f32,
}

impl LoadScale {
    /// Those of the readings that are there.
    pub(super) fn of(readings: &[f32]) -> Self {
        let known = || readings.iter().filter(|value| !value.is_nan());
        let count = known().count().max(1) as f32;
        let mean = known().sum::<f32>() / count;
        let variance = known().map(|value| (value - mean).powi(2)).sum::<f32>() / count;
        Self { mean, deviation: variance.sqrt() }
    }

    /// Its mean.
    pub(super) fn usual(self) -> f32 {
        self.mean
    }

    /// A load of one step of the day as households have it: little at night, most in the evening.
    pub(super) fn of_slot(self, slot: i64) -> f32 {
        let hour = slot as f32 * 24.0 / DAY_STEPS as f32;
        let evening = (-((hour - 19.0) / 3.0).powi(2)).exp();
        let morning = (-((hour - 8.0) / 2.0).powi(2)).exp();
        self.mean * (0.4 + 2.0 * evening + 1.0 * morning)
    }

    /// A reading made up: as large as the household's, at any time of day.
    pub(super) fn made_up(self, generator: &mut ChaCha8Rng) -> f32 {
        (self.mean + self.deviation * generator.sample::<f32, _>(StandardNormal)).abs()
    }
}

/// A household's scale, from all of its readings.
pub(super) fn scale(pool: &SamplePool, owner: &Range<usize>) -> LoadScale {
    LoadScale::of(&pool.features[owner.clone()])
}

/// Corrupts the readings of one day.
pub(super) fn corrupt(noise: Noise, day: &mut [f32], scale: LoadScale, generator: &mut ChaCha8Rng) {
    match noise {
        Noise::Features { deviation } => day.iter_mut().for_each(|value| {
            *value += deviation * scale.deviation * generator.sample::<f32, _>(StandardNormal);
        }),
        Noise::NegatedFeatures | Noise::NegatedValue => day.iter_mut().for_each(|value| *value = -*value),
        Noise::Missing => {
            day.iter_mut().filter(|_| generator.random_bool(MISSING)).for_each(|value| *value = f32::NAN);
        }
        Noise::Clock => day.rotate_left(day.len() / 2),
        Noise::Stuck => {
            let reading = day.iter().copied().find(|value| !value.is_nan()).unwrap_or(f32::NAN);
            day.fill(reading);
        }
        Noise::MadeUp => day.iter_mut().for_each(|value| *value = scale.made_up(generator)),
        Noise::Label { .. } => {}
    }
}

/// Readings from a step on; those that are missing are left out.
pub(super) fn readings(first: usize, values: &[f32]) -> Vec<Reading> {
    let reading = |(step, value): (usize, &f32)| Reading {
        time_ms: FIRST_MS + (first + step) as i64 * i64::from(STEP_S) * 1000,
        value: f64::from(*value),
    };
    values.iter().enumerate().filter(|(_, value)| !value.is_nan()).map(reading).collect()
}

/// Rows of each round, from the readings of each, as the node's window makes them: by node, then by round.
pub(super) fn rows(nodes: Vec<Vec<Vec<Reading>>>) -> Vec<Vec<LeadRows>> {
    let of_node = |rounds: Vec<Vec<Reading>>| {
        let mut window = DayAheadWindow::new(series_config());
        let of_round = |readings: Vec<Reading>| {
            readings.into_iter().for_each(|reading| window.add(reading));
            let Some(taken) = window.fresh_rows(ROWS_A_ROUND) else { return LeadRows::default() };
            window.mark_measured(taken.upto);
            match taken.batch.targets {
                Targets::Values(targets) => LeadRows { inputs: taken.batch.inputs, targets },
                Targets::Classes(_) | Targets::Chosen { .. } => LeadRows::default(),
            }
        };
        rounds.into_iter().map(of_round).collect()
    };
    nodes.into_par_iter().map(of_node).collect()
}
