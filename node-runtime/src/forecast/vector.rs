//! A forecast as a vector of quantiles.

use serde::{Deserialize, Serialize};

/// Levels of the quantiles of a forecast.
pub const QUANTILES: [f64; 3] = [0.1, 0.5, 0.9];

/// Forecast of the next steps, in the meter's unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForecastVector {
    /// The end of the last measured step, from which the leads count, in milliseconds since 1970.
    pub issued_ms: i64,
    /// Length of a step in seconds.
    pub step_s: u32,
    /// Levels of the quantiles, ascending.
    pub levels: [f64; QUANTILES.len()],
    /// For each lead, the first first, the quantiles, never crossing.
    pub values: Vec<[f32; QUANTILES.len()]>,
}

impl ForecastVector {
    /// The end of the step that the lead at `index` is for; the first lead has index 0.
    pub fn for_ms(&self, index: usize) -> i64 {
        self.issued_ms + (index as i64 + 1) * i64::from(self.step_s) * 1000
    }

    /// The medians, the first lead first.
    pub fn medians(&self) -> impl ExactSizeIterator<Item = f32> {
        self.values.iter().map(|quantiles| quantiles[QUANTILES.len() / 2])
    }
}

/// The quantiles in ascending order, and not below zero unless the load can be; sorting never increases the pinball loss.
pub(super) fn ordered(mut quantiles: [f32; QUANTILES.len()], negative: bool) -> [f32; QUANTILES.len()] {
    quantiles.sort_unstable_by(f32::total_cmp);
    if negative { quantiles } else { quantiles.map(|value| value.max(0.0)) }
}

/// The pinball loss of a forecast of the quantile `level`.
///
/// # Formula
///
/// ℓ_q(x, ŷ) = max(q·(x − ŷ), (q − 1)·(x − ŷ)); half the absolute error for q = ½.
pub(super) fn pinball(level: f64, measured: f64, forecast: f64) -> f64 {
    let error = measured - forecast;
    (level * error).max((level - 1.0) * error)
}
