#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use evenhand_models::{LoadOptions, Loss, Model, Predictor, Sgd, Trainer, shipped};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::*;
use crate::forecast::INPUTS;
use crate::reading::{InputBatch, Reading, SourcePosition};
use crate::source::Source;
use crate::source::csv::{Csv, CsvConfig};
use crate::source::time::TimeFormat;
use crate::window::ReadingsFloor;
use crate::window::{DataWindow, SeriesConfig, WindowSettings};

const HOUR_MS: i64 = 3_600_000;
const TRAINED_DAYS: i64 = 40;
const DAYS: i64 = 54;

fn window(side: &[(&str, SideRole)]) -> DataWindow {
    let mut window =
        DataWindow::new(WindowSettings::Series(SeriesConfig { step_s: 3600, ..Default::default() }));
    let side: Vec<SideSeries> =
        side.iter().map(|(name, role)| SideSeries { name: (*name).into(), role: *role }).collect();
    window.set_side_series(&side);
    window
}

/// Readings of the hours that end in a span, hour by hour.
fn hours(span: std::ops::Range<i64>, value: impl Fn(i64) -> f64) -> InputBatch {
    InputBatch::Readings(span.map(|hour| Reading { time_ms: hour * HOUR_MS, value: value(hour) }).collect())
}

/// A temperature of each day at random; the hour that ends at midnight belongs to the day before.
fn temperature() -> impl Fn(i64) -> f64 {
    let mut generator = ChaCha8Rng::seed_from_u64(5);
    let days: Vec<f64> = (0..=DAYS).map(|_| generator.random_range(-10.0..20.0)).collect();
    move |hour| days[((hour - 1) / 24) as usize]
}

/// A house that is heated by electricity.
fn load(temperature: f64, hour: i64) -> f64 {
    let heating = (20.0 - temperature) / 20.0;
    0.5 + heating + if hour % 24 > 17 { 0.5 } else { 0.0 }
}

/// Mean absolute error of the corrected medians over the days after those that were trained on.
fn error(mut window: DataWindow, model: &Model) -> f64 {
    let temperature = temperature();
    let at = |hour| load(temperature(hour), hour);
    window.add(&hours(1..TRAINED_DAYS * 24 + 1, at));
    let taken = window.batch(768, ReadingsFloor::NONE, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
    let sgd = Sgd { epochs: 400, learning_rate: 0.03, momentum: 0.9, batch_size: None };
    let initial = model.initial_weights();
    let change = Trainer::new(model).local_epochs(&initial, &taken.batch, Loss::Pinball, &sgd).unwrap();
    let weights: Vec<f32> = initial.iter().zip(&change.gradient).map(|(old, less)| old - less).collect();
    let mut predictor = Predictor::new(model, &weights).unwrap();
    let (mut sum, mut count) = (0.0, 0);
    for day in TRAINED_DAYS..DAYS {
        let forecaster = window.day_ahead().unwrap().forecaster();
        let prepared = forecaster.prepare().unwrap();
        let outputs = predictor.predict(&prepared.inputs, &[prepared.leads(), INPUTS]).unwrap();
        for (lead, quantiles) in (1..).zip(forecaster.corrected(&prepared, &outputs)) {
            sum += (f64::from(quantiles[1]) - at(day * 24 + lead)).abs();
            count += 1;
        }
        window.add(&hours(day * 24 + 1..day * 24 + 25, at));
    }
    assert_eq!(count, 24 * (DAYS - TRAINED_DAYS));
    sum / count as f64
}

#[test]
fn a_load_that_follows_the_temperature_is_forecast_better_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("temperature.csv");
    let mut text = "time,value\n".to_owned();
    let temperature = temperature();
    for hour in 1..=DAYS * 24 {
        writeln!(text, "{},{}", hour * HOUR_MS, temperature(hour)).unwrap();
    }
    std::fs::write(&path, text).unwrap();
    let settings = CsvConfig { path, time_format: TimeFormat::UnixMs, follow: false, ..Default::default() };
    let mut source = Csv::open(settings, SourcePosition::default()).unwrap();
    let mut with = window(&[("temperature", SideRole::Covariate)]);
    while let Ok(batch) = source.read(256) {
        with.add_side("temperature", &batch);
    }
    assert_eq!(with.side_position("temperature"), SourcePosition::default(), "read again after a restart");
    let model = Model::load(shipped::LOAD_QUANTILES, &LoadOptions::default()).unwrap();
    let silent = error(window(&[("temperature", SideRole::Covariate)]), &model);
    let (with, without) = (error(with, &model), error(window(&[]), &model));
    assert_eq!(silent, without, "a covariate that says nothing changes nothing");
    assert!(with < 0.5 * without, "{with} with, {without} without");
}

#[test]
fn what_a_car_draws_changes_nothing_in_the_forecast_of_the_rest() {
    let house = |hour: i64| (hour % 24) as f64 / 8.0 + (hour % 5) as f64;
    let car = |hour: i64| if hour % 24 < 6 && hour % 7 < 4 { 11.0 } else { 0.0 };
    let mut rest = window(&[]);
    rest.add(&hours(1..24 * 20, house));
    let mut whole = window(&[("car", SideRole::LeaveOut(MeterQuantity::Level))]);
    // Both orders of arrival within an hour.
    for hour in 1..24 * 20 {
        let (gross, left_out) =
            (hours(hour..hour + 1, |hour| house(hour) + car(hour)), hours(hour..hour + 1, car));
        if hour % 2 == 0 {
            whole.add(&gross);
        }
        whole.add_side("car", &left_out);
        whole.add_side("boat", &left_out);
        if hour % 2 == 1 {
            whole.add(&gross);
        }
    }
    let prepared = |window: &DataWindow| window.day_ahead().unwrap().forecaster().prepare().unwrap();
    assert_eq!(prepared(&whole), prepared(&rest));
    assert_eq!((whole.complete_ms(), whole.measured(3 * HOUR_MS)), (rest.complete_ms(), Some(house(3))));
    assert_eq!(whole.side_position("car").newest_ms, Some((24 * 20 - 1) * HOUR_MS));
    let saved = postcard::to_allocvec(&whole).unwrap();
    assert_eq!(postcard::from_bytes::<DataWindow>(&saved).unwrap().restored(), whole);
}
