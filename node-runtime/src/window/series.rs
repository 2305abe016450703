//! A series of readings as (lags → one value ahead) samples.

use std::collections::VecDeque;

use evenhand_models::{Batch, Targets};
use rand::Rng;
use serde::{Deserialize, Serialize};

use super::calendar;
use super::normalise::Normaliser;
use super::outlier_guard::OutlierGuard;
use super::replay::{SampleChoice, choose};
use super::{ReadingCounts, ReadingsFloor, TrainingBatch};
use crate::config::{MeterQuantity, SeriesConfig};
use crate::reading::Reading;

/// Features of each step: the normalised load and four phases of the calendar.
pub const FEATURES: usize = 5;

/// Readings beyond the year 9999 or before 1970 come from a broken clock.
const TIME_MS_MAX: i64 = 253_402_300_799_999;

/// Readings in a row from before the newest one after which the clock was set back.
const BACKWARD_READINGS_MAX: u32 = 10;

/// One step of the resampled series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum SeriesStep {
    Measured(f32),
    Interpolated(f32),
    Missing,
}

impl SeriesStep {
    fn value(self) -> Option<f32> {
        match self {
            SeriesStep::Measured(value) | SeriesStep::Interpolated(value) => Some(value),
            SeriesStep::Missing => None,
        }
    }
}

/// The step that is being measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct OpenStep {
    step: i64,
    sum: f64,
    count: u32,
    last: Reading,
}

/// Readings, resampled to fixed steps and bounded in number.
///
/// A step is the interval (s−1, s]·step_s and named by its end, as meters stamp their readings: a reading at the very end
/// of a step completes it, any other waits for the first reading beyond.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeriesWindow {
    settings: SeriesConfig,
    steps: VecDeque<SeriesStep>,
    /// Name of the newest complete step; meaningless while `steps` is empty.
    newest: i64,
    open: Option<OpenStep>,
    /// The last reading of the newest complete step, for counters.
    counter: Option<Reading>,
    newest_ms: Option<i64>,
    backward: u32,
    normaliser: Normaliser,
    /// Targets up to this step have been trained on.
    used: i64,
    /// Targets up to this step have been measured at reference weights.
    measured: i64,
    counts: ReadingCounts,
    #[serde(skip)]
    guard: Option<OutlierGuard>,
}

/// The latest steps as input for a forecast.
#[derive(Debug, Clone, PartialEq)]
pub struct ForecastQuery {
    /// The model's input, flat.
    pub inputs: Vec<f32>,
    /// `[1, lags, FEATURES]`.
    pub shape: Vec<usize>,
    /// The end of the step that is forecast.
    pub for_ms: i64,
}

impl SeriesWindow {
    /// An empty series.
    pub fn new(settings: SeriesConfig) -> Self {
        let normaliser = Normaliser::new(settings.normalisation_steps);
        Self {
            settings,
            steps: VecDeque::new(),
            newest: 0,
            open: None,
            counter: None,
            newest_ms: None,
            backward: 0,
            normaliser,
            used: i64::MIN,
            measured: i64::MIN,
            counts: ReadingCounts::default(),
            guard: None,
        }
    }

    /// The same series, with outliers rejected from now on: one would distort the normalisation of a year. Such a step is
    /// missing instead, unless several in a short time show that the load has changed.
    pub fn guarded(mut self) -> Self {
        self.guard.get_or_insert_default();
        self
    }

    /// Outliers rejected since the program started.
    pub fn rejected(&self) -> u64 {
        self.guard.map_or(0, |guard| guard.rejected())
    }

    /// Adds one reading, or counts it as refused.
    pub fn add(&mut self, reading: Reading) {
        let Reading { time_ms, value } = reading;
        let plausible =
            value.is_finite() && value.abs() <= f64::from(f32::MAX) && (0..=TIME_MS_MAX).contains(&time_ms);
        if !plausible {
            self.counts.refused += 1;
            return;
        }
        if self.newest_ms.is_some_and(|newest_ms| time_ms <= newest_ms) {
            // The same time is the same reading again.
            self.backward += u32::from(self.newest_ms != Some(time_ms));
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
        let open = self.open.get_or_insert(OpenStep { step, sum: 0.0, count: 0, last: reading });
        open.sum += value;
        open.count += 1;
        open.last = reading;
        if time_ms == step * step_ms {
            self.close();
        }
    }

    /// The clock jumped: only the normalisation remains of the earlier readings.
    fn restart(&mut self) {
        self.steps.clear();
        self.open = None;
        self.counter = None;
        self.used = i64::MIN;
        self.measured = i64::MIN;
        self.counts.restarts += 1;
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let Some(value) = self.value_of(&open) else { return };
        let step = open.step;
        let memory = self.steps.iter().filter_map(|step| step.value());
        if self.guard.as_mut().is_some_and(|guard| guard.rejects(value, &self.normaliser, memory)) {
            self.counts.refused += u64::from(open.count);
            return;
        }
        self.normaliser.add(value);
        let value = value as f32;

        let missing = if self.steps.is_empty() { 0 } else { (step - self.newest - 1).max(0) as usize };
        if missing >= self.settings.history_steps {
            self.steps.clear();
            self.counts.restarts += 1;
        } else if let Some(before) = self.steps.back().and_then(|step| step.value())
            && missing <= self.settings.gap_steps_max
        {
            let slope = (value - before) / (missing + 1) as f32;
            self.steps.extend((1..=missing).map(|i| SeriesStep::Interpolated(before + slope * i as f32)));
        } else {
            self.steps.extend((0..missing).map(|_| SeriesStep::Missing));
        }
        self.steps.push_back(SeriesStep::Measured(value));
        self.newest = step;
        let surplus = self.steps.len().saturating_sub(self.settings.history_steps);
        self.steps.drain(..surplus);
    }

    /// The value of a complete step; none where a counter has no earlier reading.
    fn value_of(&mut self, open: &OpenStep) -> Option<f64> {
        match self.settings.quantity {
            MeterQuantity::Level => Some(open.sum / f64::from(open.count)),
            MeterQuantity::Counter => {
                let before = self.counter.replace(open.last)?;
                let growth = open.last.value - before.value;
                let hours = (open.last.time_ms - before.time_ms) as f64 / 3_600_000.0;
                // A counter that falls was exchanged or reset.
                (growth >= 0.0).then_some(growth / hours)
            }
        }
    }

    /// The newest samples that were not used yet, at most `samples_max`, oldest first.
    pub fn batch(&self, samples_max: usize) -> Option<TrainingBatch> {
        self.samples_since(self.used, samples_max)
    }

    /// The newest samples that were not measured yet, at most `samples_max`, oldest first, and older ones as far as the floor
    /// needs them.
    pub fn unmeasured(&self, samples_max: usize, floor: ReadingsFloor) -> Option<TrainingBatch> {
        self.samples_at(&self.choice_since(self.measured, samples_max, floor)?)
    }

    fn samples_since(&self, step: i64, samples_max: usize) -> Option<TrainingBatch> {
        self.samples_at(&self.choice_since(step, samples_max, ReadingsFloor::NONE)?)
    }

    /// The newest samples, of which enough are from after `step`; none while there are too few for the floor.
    fn choice_since(&self, step: i64, samples_max: usize, floor: ReadingsFloor) -> Option<SampleChoice> {
        let fresh = self.ends_since(step, samples_max).len();
        if !floor.is_due(step, self.newest) || fresh < floor.fresh_least() {
            return None;
        }
        let all = self.ends_since(i64::MIN, samples_max.min(fresh.max(floor.least())));
        (all.len() >= floor.least()).then_some(SampleChoice { all, fresh })
    }

    /// As [`batch`](Self::batch), with the configured share drawn from samples that were used before, and enough of them for
    /// the floor.
    pub fn batch_with_replay(
        &self,
        samples_max: usize,
        floor: ReadingsFloor,
        generator: &mut impl Rng,
    ) -> Option<TrainingBatch> {
        let share = self.settings.replay_share;
        let newest = self.choice_since(self.used, samples_max, floor)?;
        if share == 0.0 {
            return self.samples_at(&newest);
        }
        let old = self.ends().filter(|end| self.step_name(*end) <= self.used).collect();
        let fresh = self.ends_since(self.used, samples_max);
        let choice = choose(&fresh, old, samples_max, share, generator)?;
        if choice.all.len() < floor.least() || choice.fresh < floor.fresh_least() {
            return self.samples_at(&newest);
        }
        self.samples_at(&choice)
    }

    /// Ends of the samples: for each, the number of steps in memory up to its target.
    fn ends(&self) -> impl DoubleEndedIterator<Item = usize> {
        let span = self.settings.lags + self.settings.horizon;
        (span..=self.steps.len()).filter(|end| self.is_sample(*end))
    }

    /// Ends of the newest samples after `step`.
    fn ends_since(&self, step: i64, samples_max: usize) -> Vec<usize> {
        let newer = self.ends().rev().take_while(|end| self.step_name(*end) > step);
        let mut ends: Vec<usize> = newer.take(samples_max).collect();
        ends.reverse();
        ends
    }

    /// The samples whose ends are in `choice`.
    fn samples_at(&self, choice: &SampleChoice) -> Option<TrainingBatch> {
        let ends = &choice.all;
        let upto = self.step_name(*ends.last()?);
        let mut inputs = Vec::with_capacity(ends.len() * self.settings.lags * FEATURES);
        let mut targets = Vec::with_capacity(ends.len());
        for end in ends {
            self.write_lags(*end - self.settings.horizon, &mut inputs);
            let target = self.steps[*end - 1].value().unwrap_or(0.0);
            targets.push(self.normaliser.normalise(f64::from(target)));
        }
        let shape = vec![ends.len(), self.settings.lags, FEATURES];
        Some(TrainingBatch {
            batch: Batch { inputs, shape, targets: Targets::Values(targets) },
            samples: ends.len(),
            fresh: choice.fresh,
            upto,
        })
    }

    /// Counts the samples up to `upto` as used.
    pub fn mark_used(&mut self, upto: i64) {
        self.used = self.used.max(upto);
    }

    /// Counts the samples up to `upto` as measured.
    pub fn mark_measured(&mut self, upto: i64) {
        self.measured = self.measured.max(upto);
    }

    /// The input for a forecast from the newest step, when its lags are complete.
    pub fn query(&self) -> Option<ForecastQuery> {
        let end = self.steps.len();
        let begin = end.checked_sub(self.settings.lags)?;
        if self.steps.range(begin..).any(|step| step.value().is_none()) {
            return None;
        }
        let mut inputs = Vec::with_capacity(self.settings.lags * FEATURES);
        self.write_lags(end, &mut inputs);
        let for_ms = (self.newest + self.settings.horizon as i64) * self.step_ms();
        Some(ForecastQuery { inputs, shape: vec![1, self.settings.lags, FEATURES], for_ms })
    }

    /// The end of the newest complete step.
    pub fn complete_ms(&self) -> Option<i64> {
        (!self.steps.is_empty()).then(|| self.newest * self.step_ms())
    }

    /// The measured value of the step that ended at `end_ms`, if it is complete.
    pub fn measured(&self, end_ms: i64) -> Option<f64> {
        match self.step_at(end_ms)? {
            SeriesStep::Measured(value) => Some(f64::from(value)),
            SeriesStep::Interpolated(_) | SeriesStep::Missing => None,
        }
    }

    /// The measured or interpolated value of the step that ended at `end_ms`, if it is complete.
    pub fn value_at(&self, end_ms: i64) -> Option<f64> {
        self.step_at(end_ms)?.value().map(f64::from)
    }

    fn step_at(&self, end_ms: i64) -> Option<SeriesStep> {
        let back = usize::try_from(self.newest.checked_sub(end_ms / self.step_ms())?).ok()?;
        self.steps.get(self.steps.len().checked_sub(back.checked_add(1)?)?).copied()
    }

    /// The present normalisation.
    pub fn normaliser(&self) -> &Normaliser {
        &self.normaliser
    }

    /// Its configuration.
    pub fn settings(&self) -> &SeriesConfig {
        &self.settings
    }

    /// The time of the newest accepted reading; a source continues after it.
    pub fn newest_ms(&self) -> Option<i64> {
        self.newest_ms
    }

    /// Complete steps in memory.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// No step is complete.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Counts of the readings.
    pub fn counts(&self) -> ReadingCounts {
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
        matches!(self.steps[end - 1], SeriesStep::Measured(_))
            && self.steps.range(lags_end - self.settings.lags..lags_end).all(|step| step.value().is_some())
    }

    fn write_lags(&self, lags_end: usize, inputs: &mut Vec<f32>) {
        for end in lags_end - self.settings.lags + 1..=lags_end {
            let value = self.steps[end - 1].value().unwrap_or(0.0);
            let end_ms = self.step_name(end) * self.step_ms();
            inputs.push(self.normaliser.normalise(f64::from(value)));
            inputs.extend(calendar::phases(end_ms, &self.settings.time_zone));
        }
    }
}

#[cfg(test)]
mod tests;
