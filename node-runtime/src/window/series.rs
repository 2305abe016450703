//! A series of readings as (lags → one value ahead) samples.

use std::collections::VecDeque;

use evenhand_models::{Batch, Targets};
use rand::Rng;
use serde::{Deserialize, Serialize};

use super::calendar;
use super::guard::Guard;
use super::normalise::Normaliser;
use super::replay::{Choice, choose};
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
    /// What a reading says.
    pub quantity: Quantity,
    /// The share of a batch that is drawn from samples that were used before, at least 0, below 1.
    pub replay_share: f64,
}

/// What a reading says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// How much it is at the moment, e.g. a power in kW; a step is the mean of its readings.
    Level,
    /// How much it was since the meter was installed, e.g. an energy in kWh; a step is the growth an hour.
    Counter,
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
            quantity: Quantity::Level,
            replay_share: 0.0,
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
            Self { replay_share, .. } if !(0.0..1.0).contains(replay_share) => {
                Err(format!("window.replay_share = {replay_share}; it is at least 0 and below 1"))
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
    last: Reading,
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
    /// The last reading of the newest complete step: where a counter stood.
    counter: Option<Reading>,
    newest_ms: Option<i64>,
    backward: u32,
    normaliser: Normaliser,
    /// Targets up to this step have been trained on.
    used: i64,
    counts: Counts,
    #[serde(skip)]
    guard: Option<Guard>,
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
            counter: None,
            newest_ms: None,
            backward: 0,
            normaliser,
            used: i64::MIN,
            counts: Counts::default(),
            guard: None,
        }
    }

    /// The same series, from now on without steps that are beyond all measure: one would spoil the normalisation of a
    /// year. Such a step is missing instead, unless several in a short time say that the load has changed.
    pub fn guarded(mut self) -> Self {
        self.guard.get_or_insert_default();
        self
    }

    /// Steps kept out by the guard since the program started.
    pub fn kept_out(&self) -> u64 {
        self.guard.map_or(0, |guard| guard.kept_out())
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
            // The same time again is the same reading again, however often.
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
        let open = self.open.get_or_insert(Open { step, sum: 0.0, count: 0, last: reading });
        open.sum += value;
        open.count += 1;
        open.last = reading;
        if time_ms == step * step_ms {
            self.close();
        }
    }

    /// The clock jumped: what was measured stays known only through the normalisation.
    fn restart(&mut self) {
        self.steps.clear();
        self.open = None;
        self.counter = None;
        self.used = i64::MIN;
        self.counts.restarts += 1;
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let Some(value) = self.value_of(&open) else { return };
        let step = open.step;
        let memory = self.steps.iter().filter_map(|step| step.value());
        if self.guard.as_mut().is_some_and(|guard| guard.keeps_out(value, &self.normaliser, memory)) {
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
            self.steps.extend((1..=missing).map(|i| Step::Interpolated(before + slope * i as f32)));
        } else {
            self.steps.extend((0..missing).map(|_| Step::Missing));
        }
        self.steps.push_back(Step::Measured(value));
        self.newest = step;
        let surplus = self.steps.len().saturating_sub(self.settings.history_steps);
        self.steps.drain(..surplus);
    }

    /// The value of a step that is over; none where a counter has nothing to compare with.
    fn value_of(&mut self, open: &Open) -> Option<f64> {
        match self.settings.quantity {
            Quantity::Level => Some(open.sum / f64::from(open.count)),
            Quantity::Counter => {
                let before = self.counter.replace(open.last)?;
                let growth = open.last.value - before.value;
                let hours = (open.last.time_ms - before.time_ms) as f64 / 3_600_000.0;
                // A counter that falls was exchanged or reset.
                (growth >= 0.0).then_some(growth / hours)
            }
        }
    }

    /// The newest samples that were not used yet, at most `samples_max`, oldest first.
    pub fn batch(&self, samples_max: usize) -> Option<Taken> {
        let all = self.fresh(samples_max);
        let fresh = all.len();
        self.taken(&Choice { all, fresh })
    }

    /// As [`batch`](Self::batch), with the configured share drawn from samples that were used before.
    pub fn batch_with_replay(&self, samples_max: usize, generator: &mut impl Rng) -> Option<Taken> {
        let share = self.settings.replay_share;
        if share == 0.0 {
            return self.batch(samples_max);
        }
        let old = self.ends().filter(|end| self.step_name(*end) <= self.used).collect();
        self.taken(&choose(&self.fresh(samples_max), old, samples_max, share, generator)?)
    }

    /// Where samples end: for each, the number of steps in memory up to its target.
    fn ends(&self) -> impl DoubleEndedIterator<Item = usize> {
        let span = self.settings.lags + self.settings.horizon;
        (span..=self.steps.len()).filter(|end| self.is_sample(*end))
    }

    fn fresh(&self, samples_max: usize) -> Vec<usize> {
        let unused = self.ends().rev().take_while(|end| self.step_name(*end) > self.used);
        let mut ends: Vec<usize> = unused.take(samples_max).collect();
        ends.reverse();
        ends
    }

    /// The samples that end where `choice` says.
    fn taken(&self, choice: &Choice) -> Option<Taken> {
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
        Some(Taken {
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

    /// The end of the newest complete step.
    pub fn complete_ms(&self) -> Option<i64> {
        (!self.steps.is_empty()).then(|| self.newest * self.step_ms())
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
mod tests;
