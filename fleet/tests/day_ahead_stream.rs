//! Whole days of meters, corrupted or made up, as nodes of the product read them.
#![allow(clippy::unwrap_used)]

use std::f32::consts::TAU;
use std::sync::Arc;

use evenhand_fleet::data::{AsPublished, Dataset, SamplePool, SampleTargets};
use evenhand_fleet::scenario::{
    Corruption, FalseReadings, NodeStream, QualitySpread, SampleStream, ScenarioConfig,
};
use evenhand_node::reading::{InputBatch, Reading};
use evenhand_node::source::Source;

const DAY_STEPS: usize = 48;
const STEP_MS: i64 = 1_800_000;
/// 2013-01-01T00:00:00Z.
const FIRST_MS: i64 = 1_356_998_400_000;

const NODES: usize = 3;
const ROUNDS: u32 = 6;
/// Days of the pool: those before the first round, the rounds and one to look ahead.
const DAYS: usize = 14 + ROUNDS as usize + 1;

fn config(corruption: Corruption, level: f64) -> ScenarioConfig {
    ScenarioConfig {
        dataset: Dataset::DayAhead,
        corruption,
        level,
        spread: QualitySpread::Ladder,
        as_published: AsPublished::Paper,
        nodes: NODES,
        rounds: ROUNDS,
        batch: DAY_STEPS,
        seed: 3,
    }
}

/// The load of a household at a step: it rises and falls once a day, and no two steps are alike.
fn load(node: usize, step: usize) -> f32 {
    1.0 + node as f32 + 0.5 * (TAU * step as f32 / DAY_STEPS as f32).sin() + 1e-4 * step as f32
}

fn stream(corruption: Corruption, level: f64) -> Arc<SampleStream> {
    let steps = DAYS * DAY_STEPS;
    let features: Vec<f32> =
        (0..NODES).flat_map(|node| (0..steps).map(move |step| load(node, step))).collect();
    let pool = SamplePool {
        shape: vec![1],
        targets: SampleTargets::Values { of: features.clone(), scales: Vec::new() },
        recorded: features.len(),
        features,
        owners: Some((0..NODES).map(|node| node * steps..(node + 1) * steps).collect()),
        note: None,
    };
    Arc::new(SampleStream::new(Arc::new(pool), &config(corruption, level)).unwrap())
}

fn readings(stream: &Arc<SampleStream>, node: usize, rounds: usize) -> Vec<Reading> {
    match NodeStream::new(Arc::clone(stream), node).read(rounds).unwrap() {
        InputBatch::Readings(readings) => readings,
        InputBatch::Rows(_) => panic!("rows"),
    }
}

#[test]
fn a_round_is_a_day_and_the_first_has_those_before_it() {
    let stream = stream(Corruption::None, 0.0);
    assert_eq!((stream.rounds(), stream.is_read()), (ROUNDS + 1, true));
    for rounds in 1..=3 {
        let found = readings(&stream, 1, rounds);
        assert_eq!(found.len(), (14 + rounds) * DAY_STEPS);
        for (step, reading) in found.iter().enumerate() {
            let time_ms = FIRST_MS + step as i64 * STEP_MS;
            assert_eq!((reading.time_ms, reading.value), (time_ms, load(1, step).into()));
        }
    }
}

#[test]
fn corrupted_days_are_corrupted_whole_and_the_clean_ones_are_scored() {
    for (corruption, is_corrupted) in [
        (
            Corruption::StuckMeter,
            (|day: &[Reading], _| day.iter().all(|one| one.value == day[0].value)) as Check,
        ),
        (Corruption::LabelNoise, |day, first| day[0].value == -f64::from(load(2, first))),
        (Corruption::ShiftedClock, |day, first| day[0].value == f64::from(load(2, first + DAY_STEPS / 2))),
        (Corruption::MadeUp, |day, first| {
            day.iter().zip(first..).all(|(one, step)| one.value != f64::from(load(2, step)))
        }),
        (Corruption::FeatureNoise, |day, first| {
            day.iter().zip(first..).all(|(one, step)| one.value != f64::from(load(2, step)))
        }),
        (Corruption::MissingValues, |day, _| day.len() < DAY_STEPS),
    ] {
        let (always, never) = (stream(corruption, 1.0), stream(corruption, 0.0));
        let days = readings(&always, 2, 1);
        let of_day = |day: i64| -> Vec<Reading> {
            let day_ms = FIRST_MS + day * DAY_STEPS as i64 * STEP_MS;
            let within =
                |one: &&Reading| (day_ms..day_ms + DAY_STEPS as i64 * STEP_MS).contains(&one.time_ms);
            days.iter().filter(within).copied().collect()
        };
        for day in 0..15 {
            assert!(is_corrupted(&of_day(day), day as usize * DAY_STEPS), "{corruption:?}, day {day}");
        }
        assert_eq!(readings(&always, 0, 1), readings(&never, 0, 1), "ζ of node 0 is 0");
        assert_eq!(always.clean(2), never.clean(2));
        assert_ne!(always.trained_rows(2, 3), never.trained_rows(2, 3), "{corruption:?}");
        assert_eq!(always.trained_rows(0, 3), never.trained_rows(0, 3));
    }
}

type Check = fn(&[Reading], usize) -> bool;

#[test]
fn half_of_the_days_are_corrupted_at_a_level_of_one_half() {
    let stream = stream(Corruption::StuckMeter, 0.5);
    let days = readings(&stream, 2, ROUNDS as usize);
    let stuck = days.chunks(DAY_STEPS).filter(|day| day[0].value == day[1].value).count();
    assert!((4..=16).contains(&stuck), "{stuck} of 20");
}

#[test]
fn what_is_scored_and_trained_on_is_the_windows_rows() {
    let stream = stream(Corruption::None, 0.0);
    let clean = stream.clean(2);
    let rows = stream.trained_rows(0, 2);
    let (of_one, inputs) = (clean.batch.shape[0] / NODES, stream.shape()[0]);
    assert_eq!(clean.batch.shape, [NODES * 2 * DAY_STEPS, inputs]);
    // Without corruption the rows of the last round are those that are scored.
    for (at, row) in rows[rows.len() - of_one..].iter().enumerate() {
        assert_eq!(row.inputs, clean.batch.inputs[at * inputs..(at + 1) * inputs]);
    }
    let held_out = stream.held_out(ROUNDS);
    assert_eq!(held_out.clean.batch.shape[0], 2 * clean.batch.shape[0], "the last round and the one ahead");
    let nodes = held_out.nodes.expect("households have their own days");
    assert_eq!(nodes.len(), held_out.clean.batch.shape[0]);
    assert!((0..NODES).all(|node| nodes.iter().filter(|of| **of == node).count() == nodes.len() / NODES));
}

#[test]
fn false_readings_have_the_times_of_true_ones() {
    let stream = stream(Corruption::None, 0.0);
    let truth = readings(&stream, 1, 2);
    for pretended in FalseReadings::ALL {
        let mut source = NodeStream::new(Arc::clone(&stream), 1).pretending(Some(pretended));
        let InputBatch::Readings(found) = source.read(2).unwrap() else { panic!("rows") };
        assert!(found.iter().map(|one| one.time_ms).eq(truth.iter().map(|one| one.time_ms)));
        let days: Vec<&[Reading]> = found.chunks(DAY_STEPS).collect();
        let same = |a: &[Reading], b: &[Reading]| a.iter().zip(b).all(|(a, b)| a.value == b.value);
        let constant = found.iter().all(|one| one.value == found[0].value);
        assert_eq!(same(days[0], days[1]), matches!(pretended, FalseReadings::RepeatedDay) || constant);
        assert_eq!(constant, matches!(pretended, FalseReadings::ZeroMeter | FalseReadings::StuckMeter));
        assert!(found.iter().zip(&truth).all(|(one, true_one)| one.value != true_one.value));
    }
}
