//! Facts known at the moment of a forecast.

use serde::{Deserialize, Serialize};

use super::LoadHistory;
use super::slot_profile::PROFILE_DAYS;

/// Half an hour: the unit in which residuals look back, whatever the step.
const HALF_HOUR_S: i64 = 1800;
/// Added to the scale in the meter's unit, so that a meter that stands still can be divided by it; 1 W in kW.
const SCALE_MIN: f32 = 1e-3;
/// Half hours before the origin whose residuals are inputs.
pub(super) const RECENT: usize = 4;

/// Facts of an origin, for every lead the same. Loads and residuals are in the meter's unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct OriginState {
    pub(super) origin: i64,
    /// s: the mean absolute load of the last 14 days.
    pub(super) scale: f32,
    /// The mean load of the last 14 days.
    pub(super) mean: f32,
    /// The newest load.
    pub(super) last: f32,
    /// x(t): the mean load of the last half hour.
    pub(super) recent_load: f32,
    /// r(t), r(t − 1), …: mean residuals of the half hours before.
    pub(super) residuals: [f32; RECENT],
    /// Mean residuals of the last 3 h, 24 h and 7 days.
    pub(super) mean_residuals: [f32; 3],
}

impl OriginState {
    /// The facts of the origin at the end of step `origin`; none if nothing was measured in the 14 days before.
    pub(super) fn at(history: &LoadHistory, origin: i64) -> Option<Self> {
        let two_weeks = PROFILE_DAYS as i64 * history.day_steps();
        let mean = history.mean_load(origin, two_weeks, |load| load)?;
        let magnitude = match history.is_negative() {
            true => history.mean_load(origin, two_weeks, f32::abs)?,
            false => mean,
        };
        let scale = magnitude + SCALE_MIN;
        let newest = (0..history.day_steps()).find_map(|back| history.load(origin - back));
        let last = newest.unwrap_or(mean);
        let recent_load = history.mean_load(origin, history.steps_of(HALF_HOUR_S), |load| load);
        let residuals = std::array::from_fn(|half_hour| {
            let (first, last) = half_hour_steps(history.step_s(), half_hour as i64);
            history.mean_residual(origin - first, last - first + 1).unwrap_or(0.0)
        });
        let mean_residual =
            |hours: i64| history.mean_residual(origin, history.steps_of(hours * 3600)).unwrap_or(0.0);
        Some(Self {
            origin,
            scale,
            mean,
            last,
            recent_load: recent_load.unwrap_or(last),
            residuals,
            mean_residuals: [mean_residual(3), mean_residual(24), mean_residual(7 * 24)],
        })
    }
}

/// Steps back from the origin, first and last, of the half hour with this number before it.
fn half_hour_steps(step_s: i64, half_hour: i64) -> (i64, i64) {
    let first = (half_hour * HALF_HOUR_S + step_s - 1) / step_s;
    let last = ((half_hour + 1) * HALF_HOUR_S + step_s - 1) / step_s - 1;
    // Half an hour is shorter than a step: the step it lies in.
    if first > last {
        (half_hour * HALF_HOUR_S / step_s, half_hour * HALF_HOUR_S / step_s)
    } else {
        (first, last)
    }
}

/// Steps of half an hour, at least one.
pub(super) fn neighbour_steps(history: &LoadHistory) -> i64 {
    history.steps_of(HALF_HOUR_S)
}

#[cfg(test)]
mod tests {
    use super::half_hour_steps;

    #[test]
    fn half_hours_mean_the_same_for_any_step() {
        let steps = |step_s| [0, 1, 2, 3].map(|half_hour| half_hour_steps(step_s, half_hour));
        assert_eq!(steps(1800), [(0, 0), (1, 1), (2, 2), (3, 3)]);
        assert_eq!(steps(900), [(0, 1), (2, 3), (4, 5), (6, 7)]);
        assert_eq!(steps(60), [(0, 29), (30, 59), (60, 89), (90, 119)]);
        assert_eq!(steps(3600), [(0, 0), (0, 0), (1, 1), (1, 1)]);
    }
}
