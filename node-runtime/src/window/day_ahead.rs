//! A series of readings as lead rows: samples of a day-ahead forecast.

use std::collections::BTreeSet;

use evenhand_models::{Batch, Targets};
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use super::left_out::{LeftOutLoads, NetLoad};
use super::{ReadingCounts, ReadingsFloor, SeriesWindow, SideRole, SideSeries, TrainingBatch};
use crate::config::{MeterQuantity, SeriesConfig};
use crate::forecast::{ForecastSettings, Forecaster, INPUTS, LeadRows, LocalTime, PERSONAL_ROWS_MAX};
use crate::reading::Reading;

const DAY_S: i64 = 86_400;
/// Days from which training rows are taken.
const TRAINING_DAYS: i64 = 30;
/// Days for which the clocks must be known before the newest step: the memory, and a day's change of clocks.
const CLOCK_DAYS_BACK: i64 = 60;
/// Days for which the clocks must be known after the newest step.
const CLOCK_DAYS_AHEAD: i64 = 9;
/// One row in this many is from the newest day.
const NEWEST_SHARE: usize = 4;
/// Rows of one target in a measurement at most.
const LEADS_OF_TARGET_MAX: usize = 4;

/// Readings in fixed steps, and their forecasts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DayAheadWindow {
    /// Turns readings into steps.
    series: SeriesWindow,
    left_out: LeftOutLoads,
    forecaster: Forecaster,
    /// The day up to which the clocks are known.
    clock_day: Option<i64>,
    /// Targets up to this step have been trained on.
    used: i64,
    /// Targets up to this step have been measured at reference weights.
    measured: i64,
}

impl DayAheadWindow {
    /// An empty window.
    pub fn new(settings: SeriesConfig) -> Self {
        let day_steps = (DAY_S / i64::from(settings.step_s.max(1))).max(1) as usize;
        let horizon_steps = if settings.horizon_steps == 0 { day_steps } else { settings.horizon_steps };
        let rules = ForecastSettings { horizon_steps, ..ForecastSettings::day_ahead(settings.step_s) };
        // The forecaster has the memory: the series keeps what its guard against outliers compares with.
        Self {
            series: SeriesWindow::new(settings).guarded(),
            left_out: LeftOutLoads::default(),
            forecaster: Forecaster::new(rules, LocalTime::default()),
            clock_day: None,
            used: i64::MIN,
            measured: i64::MIN,
        }
    }

    /// The window after a restart.
    pub(super) fn restored(mut self) -> Self {
        self.series = self.series.guarded();
        self
    }

    /// Adds one reading, or counts it as refused; a step that it completes is scored.
    pub fn add(&mut self, reading: Reading) {
        self.series.add(reading);
        self.advance();
    }

    /// Has these side series from now on; those that it had keep their values.
    pub(super) fn set_side_series(&mut self, side: &[SideSeries]) {
        let loads = side.iter().filter_map(|side| match side.role {
            SideRole::LeaveOut(quantity) => Some((side.name.as_str(), quantity)),
            SideRole::Covariate => None,
        });
        self.left_out.name(loads, self.series.settings());
        let covariates = side.iter().filter(|side| side.role == SideRole::Covariate);
        self.forecaster.name_covariates(covariates.map(|side| side.name.as_str()));
    }

    /// Adds one reading of a side series; a step that waited for it is scored.
    pub(super) fn add_side(&mut self, name: &str, reading: Reading) {
        self.left_out.add(name, reading);
        self.forecaster.add_covariate(name, reading);
        self.advance();
    }

    /// The time of the newest reading of a load to leave out.
    pub(super) fn left_out_newest_ms(&self, name: &str) -> Option<i64> {
        self.left_out.newest_ms(name)
    }

    /// Passes the complete steps to the forecaster, without the loads to leave out.
    fn advance(&mut self) {
        let step_ms = i64::from(self.series.settings().step_s) * 1000;
        let Some(newest) = self.series.complete_ms().map(|complete_ms| complete_ms / step_ms) else { return };
        let known = self.forecaster.history().newest();
        if known == Some(newest) {
            return;
        }
        if known.is_some_and(|known| newest < known) {
            // The clock was set back.
            self.forecaster.restart();
            (self.used, self.measured) = (i64::MIN, i64::MIN);
        }
        self.set_clocks(newest * step_ms);
        let first = known.filter(|known| *known < newest).map_or(newest, |known| known + 1);
        let first = first.max(newest + 1 - self.series.len() as i64);
        for step in first..=newest {
            let Some(gross) = self.series.measured(step * step_ms) else { continue };
            match self.left_out.net(gross, step * step_ms, step == newest) {
                NetLoad::Known(load) => self.forecaster.push(step, load as f32),
                NetLoad::Missing => {}
                NetLoad::Awaited => return,
            }
        }
    }

    /// Adds steps from before those in memory; the number of measured ones. `readings` are in the order of their times, and
    /// mean `quantity`.
    pub fn prepend(&mut self, readings: &[Reading], quantity: MeterQuantity) -> usize {
        let settings = SeriesConfig { quantity, ..self.settings().clone() };
        let step_ms = i64::from(settings.step_s) * 1000;
        let own_ms = self.forecaster.history().oldest().map_or(i64::MAX, |oldest| (oldest - 1) * step_ms);
        let mut earlier = Self::new(settings);
        readings
            .iter()
            .take_while(|reading| reading.time_ms <= own_ms)
            .for_each(|reading| earlier.add(*reading));
        let Some(newest) = earlier.forecaster.history().newest() else { return 0 };
        if self.clock_day.is_none() {
            self.set_clocks(newest * step_ms);
        }
        self.forecaster.prepend(earlier.forecaster.history())
    }

    /// Tells the forecaster how the clocks change around the newest step.
    fn set_clocks(&mut self, newest_ms: i64) {
        let day_ms = DAY_S * 1000;
        let day = newest_ms / day_ms;
        if self.clock_day.replace(day) != Some(day) {
            let zone = &self.series.settings().time_zone;
            let (from_ms, to_ms) =
                (newest_ms - CLOCK_DAYS_BACK * day_ms, newest_ms + CLOCK_DAYS_AHEAD * day_ms);
            let holidays = self.settings().holidays.iter().map(|holiday| holiday.local_day()).collect();
            self.forecaster.set_local_time(zone.clocks(from_ms, to_ms).with_holidays(holidays));
        }
    }

    /// Rows of the last 30 days, those of the newest day last, at most `samples_max`; none before a day's worth of targets is
    /// there, or while too few readings are new for the floor.
    pub fn batch(
        &self,
        samples_max: usize,
        floor: ReadingsFloor,
        generator: &mut impl Rng,
    ) -> Option<TrainingBatch> {
        let (first, newest) = self.targets()?;
        self.has_fresh(self.used, first, newest, floor).then_some(())?;
        let day_steps = self.forecaster.history().day_steps();
        let fresh_from = self.used.saturating_add(1).max(newest - day_steps + 1).max(first);
        let fresh_wanted = samples_max.div_ceil(NEWEST_SHARE);
        let (mut rows, mut readings) = (LeadRows::default(), BTreeSet::new());
        let old = samples_max.saturating_sub(fresh_wanted);
        let old_span = (first.max(newest + 1 - TRAINING_DAYS * day_steps), fresh_from - 1);
        let used = self.add_rows(&mut rows, old_span, old, &mut readings, generator);
        let fresh = self.add_rows(&mut rows, (fresh_from, newest), fresh_wanted, &mut readings, generator);
        let enough = fresh > 0 && readings.len() >= floor.least();
        enough.then(|| self.training_batch(rows, used + fresh, fresh, newest))
    }

    /// True if a block of steps ended since step `last`, and enough readings since then are targets.
    fn has_fresh(&self, last: i64, first: i64, newest: i64, floor: ReadingsFloor) -> bool {
        let fresh = first.max(last.saturating_add(1))..=newest;
        let history = self.forecaster.history();
        let measured = fresh.filter(|step| history.load(*step).is_some());
        floor.is_due(last, newest) && measured.take(floor.fresh_least()).count() == floor.fresh_least()
    }

    /// Rows of the last 30 days for the personal part; none before a day's worth of targets is there.
    pub fn personal_batch(&self, generator: &mut impl Rng) -> Option<Batch> {
        let (first, newest) = self.targets()?;
        let first = first.max(newest + 1 - TRAINING_DAYS * self.forecaster.history().day_steps());
        let mut rows = LeadRows::default();
        let mut readings = BTreeSet::new();
        let samples = self.add_rows(&mut rows, (first, newest), PERSONAL_ROWS_MAX, &mut readings, generator);
        (samples > 0).then(|| self.training_batch(rows, samples, samples, newest).batch)
    }

    /// Adds at most `wanted` rows whose targets are spread over the steps from the first to the last of `span`, and these
    /// steps to `readings`.
    fn add_rows(
        &self,
        rows: &mut LeadRows,
        (first, last): (i64, i64),
        wanted: usize,
        readings: &mut BTreeSet<i64>,
        generator: &mut impl Rng,
    ) -> usize {
        let targets = last - first + 1;
        let Some(earliest) = self.forecaster.origins().map(|origins| *origins.start()) else { return 0 };
        if targets <= 0 {
            return 0;
        }
        let mut added = 0;
        for number in 0..wanted as i64 {
            // One target in each of `wanted` equal parts of the span.
            let from = first + number * targets / wanted as i64;
            let to = first + (number + 1) * targets / wanted as i64;
            let target = if to > from { generator.random_range(from..to) } else { from };
            let horizon = self.forecaster.settings().horizon_steps as i64;
            let lead_max = horizon.min(target - earliest);
            if lead_max < 1 {
                continue;
            }
            // Every other row prefers short leads, where there is most to learn.
            let lead = generator.random_range(1..=lead_max);
            let lead = if number % 2 == 0 { lead } else { lead.min(generator.random_range(1..=lead_max)) };
            if self.forecaster.add_row(rows, target - lead, lead) {
                added += 1;
                readings.insert(target);
            }
        }
        added
    }

    /// Rows of the newest targets that were not measured yet, at most `samples_max`, [as they are
    /// measured](LeadRows::for_reference), and of earlier ones as far as the floor needs them; none before a day's worth of
    /// targets is there, or while too few readings are new for the floor.
    pub fn unmeasured(&self, samples_max: usize, floor: ReadingsFloor) -> Option<TrainingBatch> {
        let (rows, newest) = self.unmeasured_rows(samples_max, floor)?;
        let samples = rows.len();
        Some(self.training_batch(rows.for_reference(), samples, samples, newest))
    }

    /// The same rows as they are trained on.
    pub fn fresh_rows(&self, samples_max: usize) -> Option<TrainingBatch> {
        let (rows, newest) = self.unmeasured_rows(samples_max, ReadingsFloor::NONE)?;
        let samples = rows.len();
        Some(self.training_batch(rows, samples, samples, newest))
    }

    fn unmeasured_rows(&self, samples_max: usize, floor: ReadingsFloor) -> Option<(LeadRows, i64)> {
        let (first, newest) = self.targets()?;
        self.has_fresh(self.measured, first, newest, floor).then_some(())?;
        let earliest = *self.forecaster.origins()?.start();
        let fresh_from = first.max(self.measured.saturating_add(1));
        // Where some readings are missing, as many of before.
        let measured = (first..=newest).rev().filter(|step| self.forecaster.history().load(*step).is_some());
        let floor_from = measured.take(floor.least()).last().unwrap_or(fresh_from);
        let from = fresh_from.min(floor_from).max(newest + 1 - samples_max as i64);
        let each = (samples_max / (newest + 1 - from).max(1) as usize).clamp(1, LEADS_OF_TARGET_MAX);
        let horizon = self.forecaster.settings().horizon_steps as i64;
        let (mut rows, mut readings) = (LeadRows::default(), 0);
        for target in from..=newest {
            let before = rows.len();
            for number in 0..each as i64 {
                // Leads as spread as can be without a generator: multiples of the golden ratio.
                let turn =
                    ((target * LEADS_OF_TARGET_MAX as i64 + number) as f64 * 0.618_033_988_749_895).fract();
                // Every other row prefers short leads, as in training.
                let turn = if number % 2 == 0 { turn } else { turn * turn };
                let lead = 1 + (turn * horizon.min(target - earliest) as f64) as i64;
                self.forecaster.add_row(&mut rows, target - lead, lead);
            }
            readings += usize::from(rows.len() > before);
        }
        (readings >= floor.least()).then_some((rows, newest))
    }

    /// The first and the newest step that can be a target, if they are a day's worth.
    fn targets(&self) -> Option<(i64, i64)> {
        let origins = self.forecaster.origins()?;
        let (first, newest) = (origins.start() + 1, *origins.end());
        (newest + 1 - first >= self.forecaster.history().day_steps()).then_some((first, newest))
    }

    fn training_batch(&self, rows: LeadRows, samples: usize, fresh: usize, upto: i64) -> TrainingBatch {
        let LeadRows { inputs, targets } = rows;
        let batch = Batch { inputs, shape: vec![samples, INPUTS], targets: Targets::Values(targets) };
        TrainingBatch { batch, samples, fresh, upto }
    }

    /// Counts the targets up to `upto` as used.
    pub fn mark_used(&mut self, upto: i64) {
        self.used = self.used.max(upto);
    }

    /// Counts the targets up to `upto` as measured.
    pub fn mark_measured(&mut self, upto: i64) {
        self.measured = self.measured.max(upto);
    }

    /// The household's local day of the newest step.
    pub fn local_day(&self) -> Option<i64> {
        let history = self.forecaster.history();
        let began_ms = history.end_ms(history.newest()? - 1);
        let local_ms = began_ms.saturating_add(self.settings().time_zone.offset_ms(began_ms));
        Some(local_ms.div_euclid(DAY_S * 1000))
    }

    /// The forecasts.
    pub fn forecaster(&self) -> &Forecaster {
        &self.forecaster
    }

    /// The forecasts, to issue one.
    pub(crate) fn forecaster_mut(&mut self) -> &mut Forecaster {
        &mut self.forecaster
    }

    /// The readings as steps.
    pub fn series(&self) -> &SeriesWindow {
        &self.series
    }

    /// Its configuration.
    pub fn settings(&self) -> &SeriesConfig {
        self.series.settings()
    }

    /// Counts of the readings.
    pub fn counts(&self) -> ReadingCounts {
        self.series.counts()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::config::{HolidayDate, SampleFormat};
    use crate::forecast::INPUT_NAMES;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    const HOUR_MS: i64 = 3_600_000;

    fn window(hours: i64) -> DayAheadWindow {
        let settings =
            SeriesConfig { samples: SampleFormat::DayAhead, step_s: 3600, ..SeriesConfig::default() };
        let mut window = DayAheadWindow::new(settings);
        for hour in 1..=hours {
            window.add(Reading { time_ms: hour * HOUR_MS, value: (hour % 24) as f64 + (hour % 5) as f64 });
        }
        window
    }

    #[test]
    fn a_batch_waits_for_a_days_worth_of_targets_and_for_something_new() {
        let mut generator = ChaCha8Rng::seed_from_u64(1);
        assert_eq!(window(47).batch(64, ReadingsFloor::NONE, &mut generator), None, "23 targets");
        let mut window = window(24 * 40);
        let taken = window.batch(64, ReadingsFloor::NONE, &mut generator).unwrap();
        assert_eq!((taken.samples, taken.fresh, taken.upto), (64, 16, 24 * 40));
        assert_eq!(taken.batch.shape, [64, INPUTS]);
        assert!(matches!(&taken.batch.targets, Targets::Values(targets) if targets.len() == 3 * 64));
        window.mark_used(taken.upto);
        assert_eq!(window.batch(64, ReadingsFloor::NONE, &mut generator), None);
        window.add(Reading { time_ms: (24 * 40 + 1) * HOUR_MS, value: 3.0 });
        assert!(window.batch(64, ReadingsFloor::NONE, &mut generator).unwrap().fresh > 0);
    }

    #[test]
    fn a_holiday_counts_as_weekend() {
        let day_off = INPUT_NAMES.iter().position(|name| *name == "weekend or holiday").unwrap();
        let days_off = |holidays: &[&str]| -> f32 {
            let holidays =
                holidays.iter().map(|date| HolidayDate::try_from((*date).to_owned()).unwrap()).collect();
            let settings = SeriesConfig { step_s: 3600, holidays, ..SeriesConfig::default() };
            let mut window = DayAheadWindow::new(settings);
            // Until Sunday evening, 1970-01-04.
            for hour in 1..=4 * 24 {
                window.add(Reading { time_ms: hour * HOUR_MS, value: (hour % 24) as f64 });
            }
            let prepared = window.forecaster().prepare().unwrap();
            prepared.inputs.iter().skip(day_off).step_by(INPUTS).sum()
        };
        assert_eq!((days_off(&[]), days_off(&["1970-01-05", "1970-05-01"])), (0.0, 24.0));
    }

    #[test]
    fn each_target_is_measured_once_at_several_leads() {
        let mut window = window(24 * 5);
        let taken = window.unmeasured(32, ReadingsFloor::NONE).unwrap();
        assert_eq!((taken.samples, taken.upto), (32, 24 * 5));
        window.mark_measured(taken.upto);
        assert_eq!(window.unmeasured(32, ReadingsFloor::NONE), None);
        for hour in 1..=3 {
            window.add(Reading { time_ms: (24 * 5 + hour) * HOUR_MS, value: 1.0 });
        }
        assert_eq!(window.unmeasured(32, ReadingsFloor::NONE).unwrap().samples, 3 * LEADS_OF_TARGET_MAX);
    }

    #[test]
    fn a_day_is_the_least_that_is_answered_and_midnight_the_time() {
        let (day, mut generator) = (ReadingsFloor::new(24), ChaCha8Rng::seed_from_u64(1));
        let mut window = window(24 * 5);
        let taken = window.batch(64, day, &mut generator).unwrap();
        assert!(window.batch(20, day, &mut generator).is_none(), "20 rows cannot be of 24 readings");
        let measured = window.unmeasured(64, day).unwrap();
        assert!(window.unmeasured(20, day).is_none());
        window.mark_used(taken.upto);
        window.mark_measured(measured.upto);
        for hour in 1..=47 {
            let is_answered = window.batch(64, day, &mut generator).is_some();
            assert_eq!((is_answered, window.unmeasured(64, day).is_some()), (hour > 24, hour > 24), "{hour}");
            // Half of the day is missing but for one reading: what is left is of less than half a day until its end.
            if !(2..=12).contains(&hour) {
                window.add(Reading { time_ms: (24 * 5 + hour) * HOUR_MS, value: hour as f64 });
            }
        }
        let after_a_gap = window.unmeasured(64, day).unwrap();
        assert_eq!(after_a_gap.samples, 47 - 11, "one row of each reading since the last answer");
    }

    #[test]
    fn imported_steps_go_before_the_windows_own() {
        let value = |hour: i64| (hour % 24) as f64 + (hour % 5) as f64;
        let readings: Vec<Reading> =
            (1..=24 * 3).map(|hour| Reading { time_ms: hour * HOUR_MS, value: value(hour) }).collect();
        let whole = window(24 * 3);
        let settings = whole.settings().clone();
        // Into an empty window, and before readings of its own: as if they had been read.
        for own_from in [24 * 3, 25, 49] {
            let mut later = DayAheadWindow::new(settings.clone());
            readings[own_from..].iter().for_each(|reading| later.add(*reading));
            let own = later.forecaster().history().measured();
            let added = later.prepend(&readings, MeterQuantity::Level);
            let history = later.forecaster().history();
            assert_eq!(history.measured(), own + added);
            assert!(
                added > 0 && history.newest() >= whole.forecaster().history().newest().map(|step| step - 1)
            );
            for step in history.oldest().unwrap()..=history.newest().unwrap() {
                assert_eq!(history.load(step), whole.forecaster().history().load(step), "{own_from}: {step}");
            }
            assert_eq!(later.prepend(&readings, MeterQuantity::Level), 0, "nothing twice");
        }
    }

    #[test]
    fn a_clock_that_is_set_back_begins_a_new_history() {
        let mut window = window(24 * 3);
        for hour in 1..=30 {
            window.add(Reading { time_ms: (24 + hour) * HOUR_MS, value: 1.0 });
        }
        assert_eq!(window.counts().restarts, 1);
        assert!(window.forecaster().history().len() <= 30);
        let saved = postcard::to_allocvec(&window).unwrap();
        assert_eq!(postcard::from_bytes::<DayAheadWindow>(&saved).unwrap().restored(), window);
    }
}
