//! Batches of the shipped models for loads, and which of their values are readings.

use std::collections::BTreeMap;

use evenhand_models::{Batch, Targets};
use evenhand_node::forecast::INPUTS;
use evenhand_node::reading::Reading;
use evenhand_node::window::{
    DayAheadWindow, ReadingsFloor, SampleFormat, SeriesConfig, SeriesWindow, TrainingBatch,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::figures::TOLERANCE;
use super::problem::{PublicGuess, SampleLayout, ValueSlot};
use super::public::PublicValues;
use super::victim::{AttackedModel, LeakedReading, SeenKind, target_values};
use crate::scenario::series_config;

/// Lags of electricity-rnn's samples.
pub(super) const LAGS: usize = 24;
const FEATURES: usize = 5;
/// Steps of a day: half hours.
const DAY: usize = 48;
/// electricity-mlp: so many past loads before each of these steps.
const WINDOW: usize = 40;
const DAYS_BACK: [usize; 13] = [0, 1, 2, 3, 4, 5, 6, 7, 14, 21, 28, 35, 42];
/// Columns of a day-ahead row that are public: decays, lead and calendar, and covariates, which are not there.
const PUBLIC_COLUMNS: [std::ops::RangeInclusive<usize>; 2] = [25..=35, 37..=40];
/// Places of the loads among the inputs, less the slot median, which is the first.
const LOADS: [usize; 5] = [18, 14, 15, 16, 17];

/// A batch and what it is made of.
#[derive(Debug, Clone)]
pub(super) struct VictimBatch {
    pub(super) batch: Batch,
    pub(super) layout: SampleLayout,
    pub(super) unknowns: Vec<PublicGuess>,
    pub(super) readings: Vec<LeakedReading>,
    /// By unknown: the kind of value, for the public.
    kinds: Vec<usize>,
    /// By reading: the kind.
    reading_kinds: Vec<usize>,
}

/// The newest samples of a household; none where it has too few readings, or gaps.
pub(super) fn batch(
    model: AttackedModel,
    household: &[Reading],
    samples: usize,
    seen: SeenKind,
    seed: u64,
) -> Option<VictimBatch> {
    match model {
        AttackedModel::ElectricityRnn => lags(household, samples),
        AttackedModel::LoadQuantiles => day_ahead(household, samples, seen, seed),
        AttackedModel::ElectricityMlp => windows(household, samples),
    }
}

impl VictimBatch {
    /// With what the public knows of its values.
    pub(super) fn with_public(
        mut self,
        model: AttackedModel,
        public: &[Vec<Reading>],
        seen: SeenKind,
    ) -> Self {
        let (kinds, reading_kinds) = match model {
            AttackedModel::LoadQuantiles => (24 * (INPUTS + 3), 24 * (LOADS.len() + 1)),
            AttackedModel::ElectricityRnn | AttackedModel::ElectricityMlp => (DAY, DAY),
        };
        let (mut values, mut of_readings) = (PublicValues::new(kinds), PublicValues::new(reading_kinds));
        for (number, household) in public.iter().take(40).enumerate() {
            let Some(other) = batch(model, household, 336, seen, number as u64) else { continue };
            let known = other.values();
            other.kinds.iter().zip(&known).for_each(|(kind, value)| values.add(*kind, *value));
            for (kind, reading) in other.reading_kinds.iter().zip(&other.readings) {
                of_readings.add(*kind, reading.truth);
            }
        }
        self.unknowns = self.kinds.iter().map(|kind| values.guess(*kind)).collect();
        for (kind, reading) in self.reading_kinds.iter().zip(&mut self.readings) {
            reading.guess = of_readings.likeliest(*kind, TOLERANCE * reading.deviation);
        }
        self
    }

    /// The true values of the unknowns.
    pub(super) fn values(&self) -> Vec<f64> {
        let all = self.batch.inputs.iter().chain(target_values(&self.batch));
        let mut values = vec![0.0; self.kinds.len()];
        for (slot, value) in self.layout.slots.iter().zip(all) {
            if let ValueSlot::Unknown(number) = slot {
                values[*number] = f64::from(*value);
            }
        }
        values
    }
}

/// Consecutive samples of lags: every load but the newest is in many of them.
fn lags(household: &[Reading], samples: usize) -> Option<VictimBatch> {
    let settings = SeriesConfig { samples: SampleFormat::Lags, lags: LAGS, ..series_config() };
    let mut series = SeriesWindow::new(settings);
    household.iter().for_each(|reading| series.add(*reading));
    let TrainingBatch { batch, upto, samples: found, .. } = series.batch(samples)?;
    let targets = target_values(&batch).to_vec();
    let mut slots = Vec::with_capacity(samples * (LAGS * FEATURES + 1));
    let mut truth = vec![f32::NAN; samples + LAGS];
    for (sample, inputs) in batch.inputs.chunks_exact(LAGS * FEATURES).enumerate() {
        for (lag, step) in inputs.chunks_exact(FEATURES).enumerate() {
            let known = &mut truth[sample + lag];
            if !known.is_nan() && *known != step[0] {
                return None;
            }
            *known = step[0];
            slots.push(ValueSlot::Unknown(sample + lag));
            slots.extend(step[1..].iter().map(|phase| ValueSlot::Known((*phase).into())));
        }
    }
    for (sample, target) in targets.iter().enumerate() {
        slots.push(ValueSlot::Unknown(sample + LAGS));
        truth[sample + LAGS] = *target;
    }
    let first = upto + 1 - truth.len() as i64;
    let kinds = (0..truth.len()).map(|at| (first + at as i64).rem_euclid(DAY as i64) as usize);
    (found == samples).then(|| series_batch(batch, slots, &truth, kinds.collect()))
}

/// Windows of past loads before the same time of earlier days, as one sample of electricity-mlp has them.
fn windows(household: &[Reading], samples: usize) -> Option<VictimBatch> {
    let settings = SeriesConfig { history_steps: 1 << 20, ..series_config() };
    let mut series = SeriesWindow::new(settings);
    household.iter().for_each(|reading| series.add(*reading));
    let newest = series.complete_ms()? / 1_800_000;
    let mut numbers: BTreeMap<i64, usize> = BTreeMap::new();
    let (mut truth, mut kinds) = (Vec::new(), Vec::new());
    let mut unknown = |step: i64| -> Option<usize> {
        if let Some(known) = numbers.get(&step) {
            return Some(*known);
        }
        let value = series.value_at(step * 1_800_000)?;
        truth.push(series.normaliser().normalise(value));
        kinds.push(step.rem_euclid(DAY as i64) as usize);
        numbers.insert(step, truth.len() - 1);
        Some(truth.len() - 1)
    };
    let mut slots = Vec::new();
    let targets = newest + 1 - samples as i64..=newest;
    for target in targets.clone() {
        for days in DAYS_BACK {
            let end = target - (days * DAY) as i64;
            for step in end - WINDOW as i64..end {
                slots.push(ValueSlot::Unknown(unknown(step)?));
            }
        }
    }
    for target in targets {
        slots.push(ValueSlot::Unknown(unknown(target)?));
    }
    let value = |slot: &ValueSlot| if let ValueSlot::Unknown(at) = slot { truth[*at] } else { 0.0 };
    let (inputs, targets) = slots.split_at(samples * WINDOW * DAYS_BACK.len());
    let batch = Batch {
        inputs: inputs.iter().map(value).collect(),
        shape: vec![samples, WINDOW * DAYS_BACK.len()],
        targets: Targets::Values(targets.iter().map(value).collect()),
    };
    Some(series_batch(batch, slots, &truth, kinds))
}

/// A batch whose unknowns are readings in deviations of the household.
fn series_batch(batch: Batch, slots: Vec<ValueSlot>, truth: &[f32], kinds: Vec<usize>) -> VictimBatch {
    let reading = |(at, truth): (usize, &f32)| LeakedReading {
        parts: vec![at],
        truth: f64::from(*truth),
        guess: 0.0,
        deviation: 1.0,
    };
    VictimBatch {
        layout: SampleLayout { samples: batch.samples(), slots },
        unknowns: Vec::new(),
        readings: truth.iter().enumerate().map(reading).collect(),
        reading_kinds: kinds.clone(),
        kinds,
        batch,
    }
}

/// Rows of a day-ahead forecast. The attacker knows which targets and leads they have; of an update it does not in truth.
fn day_ahead(household: &[Reading], samples: usize, seen: SeenKind, seed: u64) -> Option<VictimBatch> {
    let mut window = DayAheadWindow::new(series_config());
    household.iter().for_each(|reading| window.add(*reading));
    let plain = window.fresh_rows(samples);
    let taken = match seen {
        SeenKind::Reference => window.unmeasured(samples, ReadingsFloor::NONE)?,
        _ => window.batch(samples, ReadingsFloor::NONE, &mut ChaCha8Rng::seed_from_u64(seed))?,
    };
    let history = window.forecaster().history();
    let last = history.newest()?;
    let loads: Vec<f64> =
        (last - 14 * DAY as i64..=last).filter_map(|step| history.load(step)).map(f64::from).collect();
    let mean = loads.iter().sum::<f64>() / loads.len() as f64;
    let variance = loads.iter().map(|load| (load - mean).powi(2)).sum::<f64>() / loads.len() as f64;
    // In units of the household's mean load, as the rows are.
    let deviation = variance.sqrt() / mean;
    let batch = taken.batch;
    let rows = batch.samples();
    let targets = target_values(&batch).to_vec();
    let is_public = |column: usize| PUBLIC_COLUMNS.iter().any(|columns| columns.contains(&column));
    let (mut slots, mut kinds) = (Vec::new(), Vec::new());
    let (mut readings, mut reading_kinds) = (Vec::new(), Vec::new());
    let calendar = if seen == SeenKind::Reference { plain?.batch } else { batch.clone() };
    let hours: Vec<usize> = calendar.inputs.chunks_exact(INPUTS).map(hour).collect();
    let per_row = INPUTS - PUBLIC_COLUMNS.iter().map(|columns| columns.clone().count()).sum::<usize>();
    for (row, inputs) in batch.inputs.chunks_exact(INPUTS).enumerate() {
        let (first, hour) = (kinds.len(), hours[row]);
        let mut of_column = [0; INPUTS];
        for (column, value) in inputs.iter().enumerate() {
            if is_public(column) {
                slots.push(ValueSlot::Known((*value).into()));
                continue;
            }
            of_column[column] = kinds.len();
            slots.push(ValueSlot::Unknown(kinds.len()));
            kinds.push(hour * (INPUTS + 3) + column);
        }
        debug_assert_eq!(kinds.len(), first + per_row);
        if seen != SeenKind::Reference {
            for (number, column) in LOADS.iter().enumerate() {
                let truth = f64::from(inputs[*column]) + f64::from(inputs[0]);
                let parts = vec![of_column[*column], of_column[0]];
                readings.push(LeakedReading { parts, truth, guess: 0.0, deviation });
                reading_kinds.push(hour * (LOADS.len() + 1) + number);
            }
        }
    }
    for (row, target) in targets.chunks_exact(3).enumerate() {
        let (first, hour) = (kinds.len(), hours[row]);
        // A reference gradient has the same target in each column: the load less the mean of the rows.
        let columns = if seen == SeenKind::Reference { 1 } else { 3 };
        slots.extend((0..3).map(|column| ValueSlot::Unknown(first + column.min(columns - 1))));
        kinds.extend((0..columns).map(|column| hour * (INPUTS + 3) + INPUTS + column));
        let (parts, truth) = match seen {
            SeenKind::Reference => (vec![first], f64::from(target[0])),
            _ => {
                let median = row * per_row;
                (vec![first + 1, median], f64::from(target[1]) + f64::from(batch.inputs[row * INPUTS]))
            }
        };
        readings.push(LeakedReading { parts, truth, guess: 0.0, deviation });
        reading_kinds.push(hour * (LOADS.len() + 1) + LOADS.len());
    }
    let layout = SampleLayout { samples: rows, slots };
    (rows == samples).then_some(VictimBatch {
        batch,
        layout,
        unknowns: Vec::new(),
        readings,
        kinds,
        reading_kinds,
    })
}

/// The hour of the day that a row forecasts.
fn hour(inputs: &[f32]) -> usize {
    let angle = inputs[29].atan2(inputs[30]).rem_euclid(std::f32::consts::TAU);
    ((angle / std::f32::consts::TAU * 24.0) as usize).min(23)
}
