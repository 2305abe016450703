//! A short year of synthetic households.

use evenhand_node::reading::Reading;

use super::{HouseholdSet, YearSettings, YearVariant, run};
use crate::data::RecordedSeries;
use crate::sim::Interrupt;

const DAYS: usize = 63;

/// Households with a daily rhythm, and evenings that go on as they began.
fn households(count: usize) -> Vec<RecordedSeries> {
    let household = |number: usize| {
        let mut state = number as u64 + 1;
        let mut noise = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / (1u64 << 24) as f64 - 0.5
        };
        let mut level = 0.0;
        let reading = |at: usize| {
            level = 0.9 * level + 0.2 * noise();
            let daily = ((at % 48) as f64 / 48.0 * std::f64::consts::TAU).sin();
            Reading { time_ms: at as i64 * 1_800_000, value: (0.6 + 0.3 * daily + level).max(0.01) }
        };
        RecordedSeries { name: format!("home-{number}"), readings: (0..DAYS * 48).map(reading).collect() }
    };
    (0..count).map(household).collect()
}

fn settings() -> YearSettings {
    YearSettings { set: HouseholdSet::All, founders: 0.75, ..YearSettings::example(DAYS as i64) }
}

#[test]
fn learning_beats_every_naive_forecast_where_residuals_last() {
    let figures = run(&settings(), &households(4), &Interrupt::default(), &mut |_| {});
    let figures = figures.expect("a year").expect("not interrupted");
    assert_eq!((figures.households, figures.days, figures.rounds), (4, DAYS, DAYS));
    let next = &figures.leads[0];
    let error = |variant: YearVariant| next.mae_ratio.0[variant.place()];
    let naive = YearVariant::NAIVE.map(error).into_iter().fold(f64::INFINITY, f64::min);
    assert!(error(YearVariant::Pooled) < error(YearVariant::SlotMedian), "{next:?}");
    assert!(error(YearVariant::EvenhandPersonal) < 1.02 * naive, "{next:?}");
    assert!((0.5..1.0).contains(&figures.coverage), "{}", figures.coverage);
    let rewards = &figures.rewards;
    assert!((50..=DAYS as u32).contains(&rewards.rounds), "{rewards:?}");
    let drawn: u32 = rewards.households.iter().map(|home| home.drawn).sum();
    assert!(drawn <= 2 * rewards.rounds && drawn > 2 * (rewards.rounds - 10), "two a round: {rewards:?}");
    let waits = rewards.households.iter().map(|home| home.longest_wait);
    assert_eq!(waits.max(), Some(rewards.longest_wait));
    let odds: f64 = rewards.households.iter().map(|home| home.odds).sum();
    assert!((odds - 4.0).abs() < 1e-9, "in shares of equal odds: {rewards:?}");
    assert!(rewards.households.iter().all(|home| home.lowest_odds >= Some(rewards.lowest_odds)));
    assert!(figures.by_weeks.iter().all(|week| (2..=4).contains(&week.households)));
}

#[test]
fn the_same_seed_gives_the_same_year() {
    let year = || run(&settings(), &households(4), &Interrupt::default(), &mut |_| {}).expect("a year");
    assert_eq!(year(), year());
}

#[test]
fn a_year_is_refused_by_the_name_of_its_flag() {
    let refused = YearSettings { rounds_a_day: 5, ..settings() };
    let error =
        run(&refused, &households(4), &Interrupt::default(), &mut |_| {}).expect_err("five rounds a day");
    assert!(error.to_string().contains("--rounds-a-day"), "{error}");
    let error =
        run(&settings(), &households(1), &Interrupt::default(), &mut |_| {}).expect_err("one household");
    assert!(error.to_string().contains("two are needed"), "{error}");
}
