#![allow(clippy::unwrap_used)]
use super::*;
use crate::time_zone::LocalTimeZone;
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

const MINUTE_MS: i64 = 60_000;

fn settings() -> SeriesConfig {
    SeriesConfig { step_s: 60, lags: 2, history_steps: 10, gap_steps_max: 1, ..Default::default() }
}

fn series(settings: SeriesConfig, readings: &[(i64, f64)]) -> SeriesWindow {
    let mut series = SeriesWindow::new(settings);
    readings.iter().for_each(|&(time_ms, value)| series.add(Reading { time_ms, value }));
    series
}

/// The normalised loads and targets of a batch, back in the meter's unit.
fn loads(series: &SeriesWindow, taken: &TrainingBatch) -> Vec<(Vec<f64>, f64)> {
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
    let calendar = calendar::phases(2 * MINUTE_MS, &LocalTimeZone::default());
    assert_eq!(taken.batch.inputs[FEATURES + 1..2 * FEATURES], calendar);
    series.mark_used(taken.upto);
    assert_eq!(series.batch(10), None);
    series.add(Reading { time_ms: 6 * MINUTE_MS, value: 16.0 });
    let fresh = series.batch(10).unwrap();
    assert_eq!(loads(&series, &fresh), [(vec![7.0, 11.0], 16.0)]);
}

#[test]
fn a_longer_horizon_looks_further() {
    let settings = SeriesConfig { horizon: 3, ..settings() };
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
    assert_eq!(series.counts().restarts, 2, "once ahead, once back");
    assert_eq!(series.counts().out_of_order, u64::from(BACKWARD_READINGS_MAX) - 1);
    assert!(series.batch(1).is_some());
}

#[test]
fn the_same_reading_again_and_again_is_no_clock_set_back() {
    let mut series = series(settings(), &minutes(&[1.0, 2.0, 3.0]));
    for _ in 0..100 {
        series.add(Reading { time_ms: 3 * MINUTE_MS, value: 3.0 });
    }
    assert_eq!((series.counts().restarts, series.counts().accepted, series.len()), (0, 3, 3));
}

#[test]
fn what_is_no_reading_is_counted_and_rejected() {
    let bad = [(1, f64::NAN), (1, f64::INFINITY), (1, 1e300), (-1, 1.0), (i64::MAX, 1.0), (i64::MIN, 1.0)];
    let series = series(settings(), &bad);
    assert_eq!((series.counts().refused, series.counts().accepted, series.len()), (6, 0, 0));
}

#[test]
fn a_counter_is_read_as_growth_an_hour() {
    let counter = SeriesConfig { quantity: MeterQuantity::Counter, ..settings() };
    let totals = [10.0, 11.0, 13.0, 13.0, 2.0, 3.0, 5.0];
    let series = series(counter, &minutes(&totals));
    let measured: Vec<_> = (1..=7).map(|minute| series.measured(minute * MINUTE_MS)).collect();
    let an_hour = |growth: f64| Some(growth * 60.0);
    assert_eq!(measured, [None, an_hour(1.0), an_hour(2.0), an_hour(0.0), None, an_hour(1.0), an_hour(2.0)]);
}

#[test]
fn a_share_of_the_batch_is_replayed() {
    let replaying = SeriesConfig { replay_share: 0.5, history_steps: 100, ..settings() };
    let mut series = series(replaying, &minutes(&[1.0; 50]));
    let mut generator = ChaCha8Rng::seed_from_u64(1);
    let first = series.batch_with_replay(8, ReadingsFloor::NONE, &mut generator).unwrap();
    assert_eq!(first.samples, 4, "nothing was used before");
    series.mark_used(first.upto);
    assert_eq!(series.batch_with_replay(8, ReadingsFloor::NONE, &mut generator), None, "nothing is new");
    (51..54).for_each(|minute| series.add(Reading { time_ms: minute * MINUTE_MS, value: 1.0 }));
    let second = series.batch_with_replay(8, ReadingsFloor::NONE, &mut generator).unwrap();
    assert_eq!((second.samples, second.fresh), (6, 3), "three new, three old");
    assert!(second.upto > first.upto);
}

#[test]
fn saves_and_restores() {
    let series = series(settings(), &minutes(&[1.0, 2.0, 4.0, 7.0, 11.0]));
    let saved = postcard::to_allocvec(&series).unwrap();
    assert_eq!(postcard::from_bytes::<SeriesWindow>(&saved).unwrap(), series);
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
        let settings = SeriesConfig { lags, horizon, history_steps: history, ..settings() };
        let mut readings = readings;
        if sorted {
            readings.sort_by_key(|reading| reading.time_ms);
        }
        let mut series = SeriesWindow::new(settings);
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

/// Half a day of a load between 1 and 7, minute by minute, and then `more`.
fn guarded(more: &[f64]) -> SeriesWindow {
    let settings = SeriesConfig { history_steps: 2_000, ..settings() };
    let load: Vec<f64> =
        (0..720).map(|minute| f64::from(1 + minute % 7)).chain(more.iter().copied()).collect();
    let mut series = SeriesWindow::new(settings).guarded();
    minutes(&load).iter().for_each(|&(time_ms, value)| series.add(Reading { time_ms, value }));
    series
}

#[test]
fn a_wild_reading_is_a_missing_step_and_spoils_nothing() {
    for wild in [1e9, -1e9, 701.0] {
        let (with, without) = (guarded(&[wild, 5.0]), guarded(&[]));
        assert_eq!((with.rejected(), with.counts().refused), (1, 1), "{wild}");
        assert_eq!(with.measured(721 * MINUTE_MS), None);
        assert_eq!(with.measured(722 * MINUTE_MS), Some(5.0));
        let change = (with.normaliser().deviation() - without.normaliser().deviation()).abs();
        assert!(change < 0.01, "{wild}: {change}");
    }
    assert_eq!(guarded(&[699.0, 5.0]).rejected(), 0, "large, but a house may well do that");
    // Who does not know yet what is large believes everything.
    let mut young = SeriesWindow::new(settings()).guarded();
    minutes(&[1.0, 1e9, 1.0]).iter().for_each(|&(time_ms, value)| young.add(Reading { time_ms, value }));
    assert_eq!(young.rejected(), 0);
}

#[test]
fn a_load_that_has_changed_for_good_is_believed_and_a_fault_a_day_is_not() {
    let exchanged = guarded(&[3_000.0; 40]);
    assert_eq!(exchanged.rejected(), 9);
    // A heat pump that runs every fourth step.
    let cycles: Vec<f64> = [3_000.0, 2.0, 2.0, 2.0].repeat(30);
    assert!((10..20).contains(&guarded(&cycles).rejected()), "{}", guarded(&cycles).rejected());
    let faults: Vec<f64> = (0..96 * 30).map(|step| if step % 96 == 50 { 1e9 } else { 3.0 }).collect();
    let faulty = guarded(&faults);
    assert_eq!(faulty.rejected(), 30);
    assert!(faulty.normaliser().deviation() < 3.0);
}

#[test]
fn a_counter_that_errs_once_is_believed_neither_up_nor_down() {
    let settings = SeriesConfig { quantity: MeterQuantity::Counter, history_steps: 2_000, ..settings() };
    let mut series = SeriesWindow::new(settings).guarded();
    for minute in 1..=400 {
        let value = if minute == 300 { 1e9 } else { f64::from(minute) + f64::from(minute % 3) };
        series.add(Reading { time_ms: i64::from(minute) * MINUTE_MS, value });
    }
    assert_eq!(series.rejected(), 1);
    assert!(series.normaliser().deviation() < 200.0, "{}", series.normaliser().deviation());
}

#[test]
fn ordinary_houses_are_the_same_with_and_without_the_guard() {
    use crate::reading::InputBatch;
    use crate::source::{
        Source,
        household::{Household, HouseholdConfig},
    };
    for seed in 0..5 {
        let household = HouseholdConfig { seed, noise: 1.0, ..Default::default() };
        let InputBatch::Readings(readings) = Household::new(household).read(20_000).unwrap() else {
            panic!("rows")
        };
        let mut plain = SeriesWindow::new(SeriesConfig::default());
        let mut guarded = SeriesWindow::new(SeriesConfig::default()).guarded();
        for reading in readings {
            plain.add(reading);
            guarded.add(reading);
        }
        assert_eq!((guarded.rejected(), guarded.batch(2_000)), (0, plain.batch(2_000)));
    }
}
