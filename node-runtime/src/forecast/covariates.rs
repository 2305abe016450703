//! Covariates: other series, known in part ahead of time, that a load may follow.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{DAY_S, ForecastSettings};
use crate::reading::Reading;

/// Covariates of a forecast at most: the inputs of a row have no place for more.
pub const COVARIATES_MAX: usize = 2;
/// Days ahead of the newest load for which values are kept, if the forecast does not reach further.
const AHEAD_DAYS: i64 = 16;
/// Readings at most this far apart are interpolated.
const INTERPOLATED_S: i64 = 6 * 3600;
/// Least deviation: a covariate that varies less is constant.
const DEVIATION_MIN: f64 = 1e-3;
/// Values beyond ± this are faults.
const VALUE_MAX: f64 = 1e9;
/// Times beyond the year 9999 are faults.
const TIME_MS_MAX: i64 = 253_402_300_799_999;
/// Mean and deviation are computed again when one value in this many has changed.
const CHANGED_SHARE: usize = 16;

/// The covariates of a forecast, in the order of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Covariates {
    series: Vec<Covariate>,
}

impl Covariates {
    /// Has covariates of these names from now on; those that it had keep their values.
    pub(super) fn name<'a>(&mut self, names: impl Iterator<Item = &'a str>, rules: &ForecastSettings) {
        let mut before = std::mem::take(&mut self.series);
        for name in names.take(COVARIATES_MAX) {
            let known = before.iter().position(|covariate| covariate.name == name);
            self.series.push(
                known.map_or_else(|| Covariate::new(name.to_owned(), rules), |at| before.swap_remove(at)),
            );
        }
    }

    /// Adds a reading of the covariate `name`, where the newest load is that of the step `newest`.
    pub(super) fn add(&mut self, name: &str, reading: Reading, newest: Option<i64>) {
        if let Some(covariate) = self.series.iter_mut().find(|covariate| covariate.name == name) {
            covariate.add(reading, newest);
        }
    }

    /// The covariates as they are seen from a step.
    pub(super) fn from(&self, origin: i64) -> CovariateView<'_> {
        let day_mean = self.series.first().and_then(|first| first.day_mean(origin)).unwrap_or(0.0);
        CovariateView { series: &self.series, day_mean }
    }

    /// Each covariate.
    pub fn iter(&self) -> impl Iterator<Item = &Covariate> {
        self.series.iter()
    }
}

/// The covariates as they are seen from the origin of a forecast.
#[derive(Debug, Clone, Copy)]
pub(super) struct CovariateView<'a> {
    series: &'a [Covariate],
    day_mean: f32,
}

impl CovariateView<'_> {
    /// The four inputs of a target: the first covariate, its mean over the day up to the origin, the second, and the share of
    /// the covariates that are known. What is unknown at the target is 0.
    pub(super) fn inputs(&self, target: i64) -> [f32; 4] {
        let at = |place: usize| self.series.get(place).and_then(|covariate| covariate.normalised(target));
        let (first, second) = (at(0), at(1));
        let known = [first, second].iter().flatten().count() as f32 / self.series.len().max(1) as f32;
        [first.unwrap_or(0.0), first.map_or(0.0, |_| self.day_mean), second.unwrap_or(0.0), known]
    }
}

/// The values of one covariate by step, past and future ones: bounded in number, and normalised by their own mean and
/// deviation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Covariate {
    name: String,
    step_s: i64,
    /// Steps in memory up to the newest load.
    back: i64,
    /// Steps in memory after it.
    ahead: i64,
    steps: BTreeMap<i64, CovariateStep>,
    mean: f64,
    deviation: f64,
    /// Values that changed since mean and deviation were computed.
    changed: usize,
}

/// The readings of one step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct CovariateStep {
    sum: f64,
    count: u32,
    last_ms: i64,
}

impl CovariateStep {
    fn mean(&self) -> f64 {
        self.sum / f64::from(self.count.max(1))
    }
}

impl Covariate {
    fn new(name: String, rules: &ForecastSettings) -> Self {
        let step_s = i64::from(rules.step_s.max(1));
        let ahead = (rules.horizon_steps as i64).max(AHEAD_DAYS * DAY_S / step_s);
        let back = rules.history_steps as i64;
        Self { name, step_s, back, ahead, steps: BTreeMap::new(), mean: 0.0, deviation: 1.0, changed: 0 }
    }

    /// Adds a reading; a step has the mean of its readings. A reading that is no later than the last one of its step begins
    /// the step again: a forecast was revised.
    fn add(&mut self, reading: Reading, newest: Option<i64>) {
        let Reading { time_ms, value } = reading;
        let plausible = value.is_finite() && value.abs() <= VALUE_MAX && (0..=TIME_MS_MAX).contains(&time_ms);
        if !plausible {
            return;
        }
        let step_ms = self.step_s * 1000;
        let step = time_ms.div_euclid(step_ms) + i64::from(time_ms.rem_euclid(step_ms) != 0);
        let begun = CovariateStep { sum: value, count: 1, last_ms: time_ms };
        let entry = self.steps.entry(step).or_insert(begun);
        *entry = match *entry {
            CovariateStep { sum, count, last_ms } if time_ms > last_ms => {
                CovariateStep { sum: sum + value, count: count.saturating_add(1), last_ms: time_ms }
            }
            _ => begun,
        };
        self.changed += 1;
        self.forget(newest);
        if self.changed * CHANGED_SHARE >= self.steps.len() {
            self.normalise();
        }
    }

    /// Forgets what is too old or too far ahead, where the newest load is that of the step `newest`.
    fn forget(&mut self, newest: Option<i64>) {
        let Some(last) = self.steps.keys().next_back().copied() else { return };
        let newest = newest.unwrap_or(last - self.ahead);
        while self.steps.first_key_value().is_some_and(|(step, _)| *step <= newest - self.back) {
            self.steps.pop_first();
        }
        while self.steps.last_key_value().is_some_and(|(step, _)| *step > newest + self.ahead) {
            self.steps.pop_last();
        }
    }

    /// # Formula
    ///
    /// μ = Σ xᵢ / n and σ² = Σ (xᵢ − μ)² / n over the steps in memory.
    fn normalise(&mut self) {
        let count = self.steps.len().max(1) as f64;
        self.mean = self.steps.values().map(CovariateStep::mean).sum::<f64>() / count;
        let squares = self.steps.values().map(|step| (step.mean() - self.mean).powi(2)).sum::<f64>();
        self.deviation = (squares / count).sqrt().max(DEVIATION_MIN);
        self.changed = 0;
    }

    /// The value of a step: the mean of its readings, or between two readings that are not too far apart.
    pub fn value(&self, step: i64) -> Option<f64> {
        if let Some(known) = self.steps.get(&step) {
            return Some(known.mean());
        }
        let (before, from) = self.steps.range(..step).next_back()?;
        let (after, to) = self.steps.range(step..).next()?;
        let apart = after - before;
        let share = (step - before) as f64 / apart as f64;
        (apart * self.step_s <= INTERPOLATED_S).then(|| from.mean() + share * (to.mean() - from.mean()))
    }

    /// The value of a step less the mean, in deviations.
    fn normalised(&self, step: i64) -> Option<f32> {
        self.value(step).map(|value| self.in_deviations(value))
    }

    /// The mean of the day up to a step, normalised.
    fn day_mean(&self, last: i64) -> Option<f32> {
        let first = last - DAY_S / self.step_s + 1;
        let (sum, count) = self
            .steps
            .range(first..=last)
            .fold((0.0, 0u32), |(sum, count), (_, step)| (sum + step.mean(), count + 1));
        (count > 0).then(|| self.in_deviations(sum / f64::from(count)))
    }

    fn in_deviations(&self, value: f64) -> f32 {
        ((value - self.mean) / self.deviation) as f32
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Steps in memory with readings.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// It has no value.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const HOUR_MS: i64 = 3_600_000;

    fn hourly() -> ForecastSettings {
        ForecastSettings::day_ahead(3600)
    }

    fn covariates(names: &[&str]) -> Covariates {
        let mut covariates = Covariates::default();
        covariates.name(names.iter().copied(), &hourly());
        covariates
    }

    #[test]
    fn values_are_means_of_steps_normalised_by_mean_and_deviation() {
        let mut known = covariates(&["temperature"]);
        let at = |minutes: i64, value| Reading { time_ms: minutes * 60_000, value };
        // Hour 24: 4; hour 25: mean of 6 and 10; hour 28: 12, so that hours 26 and 27 lie between.
        for reading in [at(1440, 4.0), at(1470, 6.0), at(1500, 10.0), at(1680, 12.0)] {
            known.add("temperature", reading, Some(24));
        }
        known.add("wind", at(1440, 99.0), Some(24));
        let series = known.iter().next().unwrap();
        assert_eq!((series.value(25), series.value(27)), (Some(8.0), Some(8.0 + 4.0 * 2.0 / 3.0)));
        assert_eq!((series.value(23), series.value(29)), (None, None));
        let deviation = (32.0f64 / 3.0).sqrt();
        let expected =
            [(12.0 - 8.0) / deviation, (4.0 - 8.0) / deviation, 0.0, 1.0].map(|input| input as f32);
        assert_eq!(known.from(24).inputs(28), expected);
        assert_eq!(known.from(24).inputs(29), [0.0; 4], "unknown");
        // A forecast that is revised replaces the one before.
        known.add("temperature", at(1680, 20.0), Some(24));
        assert_eq!(known.iter().next().unwrap().value(28), Some(20.0));
    }

    #[test]
    fn each_covariate_is_known_or_not_for_itself_and_keeps_its_values_by_name() {
        let mut both = covariates(&["temperature", "wind"]);
        for (hour, value) in [(30, 1.0), (31, 3.0)] {
            both.add("wind", Reading { time_ms: hour * HOUR_MS, value }, Some(24));
        }
        assert_eq!(both.from(24).inputs(31), [0.0, 0.0, 1.0, 0.5]);
        both.name(["wind"].into_iter(), &hourly());
        assert_eq!(both.from(24).inputs(31), [1.0, 0.0, 0.0, 1.0]);
        both.name([].into_iter(), &hourly());
        assert_eq!(both, Covariates::default());
    }

    proptest! {
        #[test]
        fn memory_is_bounded_and_inputs_are_finite(
            readings in prop::collection::vec((any::<i64>(), 0i64..100_000, any::<f64>(), -1e9f64..1e9), 1..300),
            newest in prop::option::of(0i64..100_000),
            target in 0i64..100_000,
        ) {
            let rules = ForecastSettings { history_steps: 48, ..hourly() };
            let mut known = Covariates::default();
            known.name(["temperature"].into_iter(), &rules);
            for (time_ms, hour, wild, value) in readings {
                known.add("temperature", Reading { time_ms, value: wild }, newest);
                known.add("temperature", Reading { time_ms: hour * HOUR_MS, value }, newest);
                let series = known.iter().next().unwrap();
                prop_assert!(series.len() <= 48 + 16 * 24);
            }
            prop_assert!(known.from(target - 3).inputs(target).iter().all(|input| input.is_finite()));
        }
    }
}
