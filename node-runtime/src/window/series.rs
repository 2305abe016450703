//! A series of readings as (lags → one value ahead) samples.

use std::collections::VecDeque;

use evenhand_models::{Batch, Targets};
use serde::{Deserialize, Serialize};

use super::calendar;
use super::normalise::Normaliser;
use super::{Counts, Taken};
use crate::reading::Reading;

/// Numbers a model sees for each step: the normalised load and four phases of the calendar.
pub const FEATURES: usize = 5;

/// Readings beyond the year 9999 or before 1970 come from a broken clock.
const TIME_MS_MAX: i64 = 253_402_300_799_999;

/// After so many readings in a row from before the newest one, the clock was set back and is believed.
const BACKWARD_READINGS_MAX: u32 = 10;

/// How a series is cut into samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SeriesSettings {
    /// Seconds between two steps; readings within a step are averaged.
    pub step_s: u32,
    /// Steps a model looks back.
    pub lags: usize,
    /// Steps it looks ahead.
    pub horizon: usize,
    /// Steps kept in memory.
    pub history_steps: usize,
    /// Missing steps up to so many in a row are interpolated; they serve as input, never as target.
    pub gap_steps_max: usize,
    /// Steps after which the running normalisation forgets.
    pub normalisation_steps: u32,
    /// Local time minus UTC, for the time of day.
    pub utc_offset_s: i32,
}

impl Default for SeriesSettings {
    fn default() -> Self {
        Self {
            step_s: 900,
            lags: 24,
            horizon: 1,
            history_steps: 2_880,
            gap_steps_max: 2,
            normalisation_steps: 35_040,
            utc_offset_s: 0,
        }
    }
}

impl SeriesSettings {
    /// The first setting that makes no sense, with the remedy.
    pub fn check(&self) -> Result<(), String> {
        let span = self.lags.saturating_add(self.horizon);
        match self {
            Self { step_s: 0, .. } => Err("window.step_s = 0; a step lasts at least one second".into()),
            Self { lags: 0, .. } => {
                Err("window.lags = 0; a model needs at least one step to look back on".into())
            }
            Self { horizon: 0, .. } => {
                Err("window.horizon = 0; a forecast looks at least one step ahead".into())
            }
            Self { history_steps, .. } if *history_steps < span => Err(format!(
                "window.history_steps = {history_steps} cannot hold one sample; raise it to lags + horizon = {span} or more"
            )),
            _ => Ok(()),
        }
    }
}

/// One step of the resampled series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Step {
    Measured(f32),
    Interpolated(f32),
    Missing,
}

impl Step {
    fn value(self) -> Option<f32> {
        match self {
            Step::Measured(value) | Step::Interpolated(value) => Some(value),
            Step::Missing => None,
        }
    }
}

/// The step that is being measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Open {
    step: i64,
    sum: f64,
    count: u32,
}

/// Readings, resampled to fixed steps and bounded in number.
///
/// A step is the interval (s−1, s]·step_s and named by its end, as meters stamp their readings: a reading at the very end
/// of a step completes it, any other waits for the first reading beyond.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    settings: SeriesSettings,
    steps: VecDeque<Step>,
    /// Name of the newest complete step; meaningless while `steps` is empty.
    newest: i64,
    open: Option<Open>,
    newest_ms: Option<i64>,
    backward: u32,
    normaliser: Normaliser,
    /// Targets up to this step have been trained on.
    used: i64,
    counts: Counts,
}

/// The latest steps as input for a forecast.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The model's input, flat.
    pub inputs: Vec<f32>,
    /// `[1, lags, FEATURES]`.
    pub shape: Vec<usize>,
    /// The end of the step that is forecast.
    pub for_ms: i64,
}

impl Series {
    /// An empty series.
    pub fn new(settings: SeriesSettings) -> Self {
        let normaliser = Normaliser::new(settings.normalisation_steps);
        Self {
            settings,
            steps: VecDeque::new(),
            newest: 0,
            open: None,
            newest_ms: None,
            backward: 0,
            normaliser,
            used: i64::MIN,
            counts: Counts::default(),
        }
    }

    /// Takes one reading in, or counts why not.
    pub fn add(&mut self, reading: Reading) {
        let Reading { time_ms, value } = reading;
        let plausible =
            value.is_finite() && value.abs() <= f64::from(f32::MAX) && (0..=TIME_MS_MAX).contains(&time_ms);
        if !plausible {
            self.counts.refused += 1;
            return;
        }
        if self.newest_ms.is_some_and(|newest_ms| time_ms <= newest_ms) {
            self.backward += 1;
            if self.backward < BACKWARD_READINGS_MAX {
                self.counts.out_of_order += 1;
                return;
            }
            self.restart();
        }
        self.backward = 0;
        self.newest_ms = Some(time_ms);
        self.counts.accepted += 1;

        let step_ms = self.step_ms();
        let step = time_ms.div_euclid(step_ms) + i64::from(time_ms.rem_euclid(step_ms) != 0);
        if self.open.as_ref().is_some_and(|open| open.step < step) {
            self.close();
        }
        let open = self.open.get_or_insert(Open { step, sum: 0.0, count: 0 });
        open.sum += value;
        open.count += 1;
        if time_ms == step * step_ms {
            self.close();
        }
    }

    /// The clock was set back: what was measured stays known only through the normalisation.
    fn restart(&mut self) {
        self.steps.clear();
        self.open = None;
        self.used = i64::MIN;
        self.counts.restarts += 1;
    }

    fn close(&mut self) {
        let Some(Open { step, sum, count }) = self.open.take() else { return };
        let value = sum / f64::from(count);
        self.normaliser.add(value);
        let value = value as f32;

        let missing = if self.steps.is_empty() { 0 } else { (step - self.newest - 1).max(0) as usize };
        if missing >= self.settings.history_steps {
            self.steps.clear();
        } else if let Some(before) = self.steps.back().and_then(|step| step.value())
            && missing <= self.settings.gap_steps_max
        {
            let slope = (value - before) / (missing + 1) as f32;
            self.steps.extend((1..=missing).map(|i| Step::Interpolated(before + slope * i as f32)));
        } else {
            self.steps.extend((0..missing).map(|_| Step::Missing));
        }
        self.steps.push_back(Step::Measured(value));
        self.newest = step;
        let surplus = self.steps.len().saturating_sub(self.settings.history_steps);
        self.steps.drain(..surplus);
    }

    /// The newest samples that were not used yet, at most `samples_max`, oldest first.
    pub fn batch(&self, samples_max: usize) -> Option<Taken> {
        let span = self.settings.lags + self.settings.horizon;
        let mut ends: Vec<usize> = (span..=self.steps.len())
            .rev()
            .take_while(|end| self.step_name(*end) > self.used)
            .filter(|end| self.is_sample(*end))
            .take(samples_max)
            .collect();
        ends.reverse();
        let upto = self.step_name(*ends.last()?);
        let mut inputs = Vec::with_capacity(ends.len() * self.settings.lags * FEATURES);
        let mut targets = Vec::with_capacity(ends.len());
        for end in &ends {
            self.write_lags(*end - self.settings.horizon, &mut inputs);
            let target = self.steps[*end - 1].value().unwrap_or(0.0);
            targets.push(self.normaliser.normalise(f64::from(target)));
        }
        let shape = vec![ends.len(), self.settings.lags, FEATURES];
        Some(Taken {
            batch: Batch { inputs, shape, targets: Targets::Values(targets) },
            samples: ends.len(),
            upto,
        })
    }

    /// Counts the samples up to `upto` as used.
    pub fn mark_used(&mut self, upto: i64) {
        self.used = self.used.max(upto);
    }

    /// The input for a forecast from the newest step, when its lags are complete.
    pub fn query(&self) -> Option<Query> {
        let end = self.steps.len();
        let begin = end.checked_sub(self.settings.lags)?;
        if self.steps.range(begin..).any(|step| step.value().is_none()) {
            return None;
        }
        let mut inputs = Vec::with_capacity(self.settings.lags * FEATURES);
        self.write_lags(end, &mut inputs);
        let for_ms = (self.newest + self.settings.horizon as i64) * self.step_ms();
        Some(Query { inputs, shape: vec![1, self.settings.lags, FEATURES], for_ms })
    }

    /// The measured value of the step that ended at `end_ms`, if it is complete.
    pub fn measured(&self, end_ms: i64) -> Option<f64> {
        let back = usize::try_from(self.newest.checked_sub(end_ms / self.step_ms())?).ok()?;
        match self.steps.get(self.steps.len().checked_sub(back + 1)?)? {
            Step::Measured(value) => Some(f64::from(*value)),
            Step::Interpolated(_) | Step::Missing => None,
        }
    }

    /// How values are normalised at present.
    pub fn normaliser(&self) -> &Normaliser {
        &self.normaliser
    }

    /// How the series is cut.
    pub fn settings(&self) -> &SeriesSettings {
        &self.settings
    }

    /// The time of the newest accepted reading: a source goes on from there.
    pub fn newest_ms(&self) -> Option<i64> {
        self.newest_ms
    }

    /// Complete steps in memory.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether no step is complete.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// What became of the readings.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn step_ms(&self) -> i64 {
        i64::from(self.settings.step_s) * 1000
    }

    /// Name of the last step of the first `end` steps in memory.
    fn step_name(&self, end: usize) -> i64 {
        self.newest - (self.steps.len() - end) as i64
    }

    fn is_sample(&self, end: usize) -> bool {
        let lags_end = end - self.settings.horizon;
        matches!(self.steps[end - 1], Step::Measured(_))
            && self.steps.range(lags_end - self.settings.lags..lags_end).all(|step| step.value().is_some())
    }

    fn write_lags(&self, lags_end: usize, inputs: &mut Vec<f32>) {
        for end in lags_end - self.settings.lags + 1..=lags_end {
            let value = self.steps[end - 1].value().unwrap_or(0.0);
            let local_ms =
                self.step_name(end) * self.step_ms() + i64::from(self.settings.utc_offset_s) * 1000;
            inputs.push(self.normaliser.normalise(f64::from(value)));
            inputs.extend(calendar::phases(local_ms));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const MINUTE_MS: i64 = 60_000;

    fn settings() -> SeriesSettings {
        SeriesSettings { step_s: 60, lags: 2, history_steps: 10, gap_steps_max: 1, ..Default::default() }
    }

    fn series(settings: SeriesSettings, readings: &[(i64, f64)]) -> Series {
        let mut series = Series::new(settings);
        readings.iter().for_each(|&(time_ms, value)| series.add(Reading { time_ms, value }));
        series
    }

    /// The normalised loads and targets of a batch, back in the meter's unit.
    fn loads(series: &Series, taken: &Taken) -> Vec<(Vec<f64>, f64)> {
        let restore = |value: f32| (series.normaliser().restore(value) * 1e4).round() / 1e4;
        let Targets::Values(targets) = &taken.batch.targets else { panic!("classes") };
        let lags = series.settings.lags;
        taken
            .batch
            .inputs
            .chunks(lags * FEATURES)
            .zip(targets)
            .map(|(inputs, target)| {
                (inputs.chunks(FEATURES).map(|step| restore(step[0])).collect(), restore(*target))
            })
            .collect()
    }

    fn minutes(values: &[f64]) -> Vec<(i64, f64)> {
        (1..).zip(values).map(|(minute, value)| (minute * MINUTE_MS, *value)).collect()
    }

    #[test]
    fn samples_are_lags_and_the_value_after_them() {
        let mut series = series(settings(), &minutes(&[1.0, 2.0, 4.0, 7.0, 11.0]));
        let taken = series.batch(10).unwrap();
        assert_eq!(taken.batch.shape, [3, 2, FEATURES]);
        assert_eq!(
            loads(&series, &taken),
            [(vec![1.0, 2.0], 4.0), (vec![2.0, 4.0], 7.0), (vec![4.0, 7.0], 11.0)]
        );
        let calendar = calendar::phases(2 * MINUTE_MS);
        assert_eq!(taken.batch.inputs[FEATURES + 1..2 * FEATURES], calendar);
        series.mark_used(taken.upto);
        assert_eq!(series.batch(10), None);
        series.add(Reading { time_ms: 6 * MINUTE_MS, value: 16.0 });
        let fresh = series.batch(10).unwrap();
        assert_eq!(loads(&series, &fresh), [(vec![7.0, 11.0], 16.0)]);
    }

    #[test]
    fn a_longer_horizon_looks_further() {
        let settings = SeriesSettings { horizon: 3, ..settings() };
        let series = series(settings, &minutes(&[1.0, 2.0, 4.0, 7.0, 11.0]));
        assert_eq!(loads(&series, &series.batch(10).unwrap()), [(vec![1.0, 2.0], 11.0)]);
        assert_eq!(series.query().unwrap().for_ms, 8 * MINUTE_MS);
    }

    #[test]
    fn the_newest_samples_are_taken_when_there_are_too_many() {
        let series = series(settings(), &minutes(&[1.0, 2.0, 4.0, 7.0, 11.0]));
        let taken = series.batch(1).unwrap();
        assert_eq!(loads(&series, &taken), [(vec![4.0, 7.0], 11.0)]);
    }

    #[test]
    fn readings_within_a_step_are_averaged() {
        let series = series(settings(), &[(1, 1.0), (30_000, 2.0), (60_000, 6.0), (60_001, 8.0)]);
        assert_eq!(series.len(), 1, "the second step waits for its end");
        assert_eq!(series.measured(60_000), Some(3.0));
        assert_eq!(series.measured(120_000), None);
    }

    #[test]
    fn short_gaps_serve_as_input_but_never_as_target() {
        let mut readings = minutes(&[1.0, 2.0, 4.0, 7.0, 11.0]);
        readings.remove(2);
        let series = series(settings(), &readings);
        let samples = loads(&series, &series.batch(10).unwrap());
        assert_eq!(samples, [(vec![2.0, 4.5], 7.0), (vec![4.5, 7.0], 11.0)]);
        assert_eq!(series.measured(3 * MINUTE_MS), None);
    }

    #[test]
    fn long_gaps_break_the_series() {
        let mut readings = minutes(&[1.0, 2.0, 0.0, 0.0, 3.0, 4.0, 5.0]);
        readings.drain(2..4);
        let series = series(settings(), &readings);
        assert_eq!(loads(&series, &series.batch(10).unwrap()), [(vec![3.0, 4.0], 5.0)]);
    }

    #[test]
    fn a_clock_that_jumps_ahead_and_back_is_survived() {
        let mut series = series(settings(), &minutes(&[1.0, 2.0, 3.0]));
        series.add(Reading { time_ms: 40 * 365 * 86_400_000, value: 1.0 });
        assert_eq!(series.len(), 1);
        for minute in 4..30 {
            series.add(Reading { time_ms: minute * MINUTE_MS, value: 1.0 });
        }
        assert_eq!(series.counts().restarts, 1);
        assert_eq!(series.counts().out_of_order, u64::from(BACKWARD_READINGS_MAX) - 1);
        assert!(series.batch(1).is_some());
    }

    #[test]
    fn what_is_no_reading_is_counted_and_kept_out() {
        let bad =
            [(1, f64::NAN), (1, f64::INFINITY), (1, 1e300), (-1, 1.0), (i64::MAX, 1.0), (i64::MIN, 1.0)];
        let series = series(settings(), &bad);
        assert_eq!((series.counts().refused, series.counts().accepted, series.len()), (6, 0, 0));
    }

    #[test]
    fn saves_and_restores() {
        let series = series(settings(), &minutes(&[1.0, 2.0, 4.0, 7.0, 11.0]));
        let saved = postcard::to_allocvec(&series).unwrap();
        assert_eq!(postcard::from_bytes::<Series>(&saved).unwrap(), series);
    }

    fn any_reading() -> impl Strategy<Value = Reading> {
        let time = prop_oneof![8 => 0i64..3_000_000, 1 => any::<i64>(), 1 => Just(TIME_MS_MAX)];
        let value = prop_oneof![8 => -10.0f64..10.0, 1 => any::<f64>()];
        (time, value).prop_map(|(time_ms, value)| Reading { time_ms, value })
    }

    proptest! {
        #[test]
        fn any_readings_give_finite_bounded_samples(
            readings in prop::collection::vec(any_reading(), 0..300),
            sorted: bool, lags in 1usize..5, horizon in 1usize..4, history in 10usize..40, samples_max in 0usize..20,
        ) {
            let settings = SeriesSettings { lags, horizon, history_steps: history, ..settings() };
            let mut readings = readings;
            if sorted {
                readings.sort_by_key(|reading| reading.time_ms);
            }
            let mut series = Series::new(settings);
            for reading in readings {
                series.add(reading);
                prop_assert!(series.len() <= history);
                if let Some(taken) = series.batch(samples_max) {
                    let Targets::Values(targets) = &taken.batch.targets else { panic!("classes") };
                    prop_assert!(taken.samples <= samples_max && taken.samples == targets.len());
                    prop_assert_eq!(taken.batch.inputs.len(), taken.samples * lags * FEATURES);
                    prop_assert!(taken.batch.inputs.iter().chain(targets).all(|value| value.is_finite()));
                    if taken.samples % 2 == 0 {
                        series.mark_used(taken.upto);
                        prop_assert!(series.batch(samples_max).is_none());
                    }
                }
                if let Some(query) = series.query() {
                    prop_assert!(query.inputs.iter().all(|value| value.is_finite()));
                }
            }
        }
    }
}
