//! A synthetic household: for demos, tests and experiments.
//!
//! Its load is a pure function of its seed and the time, so that any part of the series can be read at any time, and the
//! truth beside the noisy readings.
#![cfg(feature = "household")]

use std::f64::consts::TAU;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use super::{Paced, Source, SourceContext, SourceError, SourceKind, now_ms};
use crate::config::Pace;
use crate::config::section::section;
use crate::reading::{InputBatch, Reading};

const HOUR_S: f64 = 3600.0;
const DAY_S: u32 = 24 * 3600;
/// Below this temperature in °C a house is heated.
const HEATING_BELOW: f64 = 16.0;

section! {
    /// A synthetic household: its character and the quality of its meter.
    pub struct HouseholdConfig {
        /// The household's character; the same seed is the same household.
        pub seed: u64 = 1,
        /// Share of noise in the readings, from 0 (the truth) to 1 (nothing but noise).
        pub noise: f64 = 0.0,
        /// Seconds between two readings; must divide a day.
        pub step_s: u32 = 900,
        /// Start of the series: milliseconds since 1970 in UTC; the default is Monday, 1 January 2024.
        pub start_ms: i64 = 1_704_067_200_000,
        /// The weather, which neighbours share.
        pub weather_seed: u64 = 0,
    }
}

impl SourceKind for HouseholdConfig {
    fn check(&self) -> Result<(), String> {
        if !(0.0..=1.0).contains(&self.noise) {
            return Err(format!("source.noise = {}; it lies between 0 and 1", self.noise));
        }
        if self.step_s == 0 || !DAY_S.is_multiple_of(self.step_s) {
            return Err(format!("source.step_s = {}; choose a divisor of {DAY_S}, e.g. 900", self.step_s));
        }
        if !(0..=253_402_300_799_999).contains(&self.start_ms) {
            return Err(format!(
                "source.start_ms = {} lies before 1970 or beyond the year 9999",
                self.start_ms
            ));
        }
        Ok(())
    }

    fn place(&self) -> String {
        "a synthetic household".into()
    }

    fn open(&self, context: &SourceContext<'_>) -> Result<Box<dyn Source>, SourceError> {
        let household = Household::new(self.clone()).resume(context.position.newest_ms);
        let pace = &context.config.pace;
        Ok(match pace.by {
            Pace::Rounds => Box::new(household),
            Pace::Clock => Box::new(Paced::new(household, pace.speed, now_ms())),
        })
    }

    fn is_recorded(&self) -> bool {
        true
    }
}

/// A load that is switched on at about the same time on some days.
#[derive(Debug, Clone)]
struct Appliance {
    kilowatts: f64,
    hours: f64,
    start_hour: f64,
    spread_hours: f64,
    daily_chance: f64,
}

/// Habits and appliances of one household.
#[derive(Debug, Clone)]
struct Character {
    standby: f64,
    morning: (f64, f64),
    noon: f64,
    evening: (f64, f64),
    weekend_delay: f64,
    heating_a_degree: f64,
    appliances: Vec<Appliance>,
}

/// Independent streams of one seed.
#[derive(Clone, Copy)]
enum RandomStream {
    Character,
    Day,
    Noise,
    Weather,
}

fn generator(seed: u64, stream: RandomStream, day: i64) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream((stream as u64) << 48 | (day as u64 & 0xffff_ffff_ffff));
    generator
}

/// A source of synthetic readings, in kilowatts.
#[derive(Debug, Clone)]
pub struct Household {
    settings: HouseholdConfig,
    character: Character,
    /// Mean and deviation of the truth, which the noise imitates.
    typical: (f64, f64),
    next: u64,
    day: Day,
}

/// One day, computed at once.
#[derive(Debug, Clone)]
struct Day {
    number: i64,
    truth: Vec<f64>,
    noise: Vec<f64>,
}

impl Household {
    /// The household of `settings`, at the beginning of its series.
    ///
    /// The settings must pass [`SourceKind::check`].
    pub fn new(settings: HouseholdConfig) -> Self {
        let character = Character::of(settings.seed);
        let first = settings.start_ms.div_euclid(i64::from(DAY_S) * 1000);
        let hourly = HouseholdConfig { step_s: 3600, ..settings.clone() };
        let week: Vec<f64> =
            (first..first + 7).flat_map(|day| truth_of_day(&hourly, &character, day)).collect();
        let mean = week.iter().sum::<f64>() / week.len() as f64;
        let variance = week.iter().map(|load| (load - mean).powi(2)).sum::<f64>() / week.len() as f64;
        let day = Day { number: i64::MIN, truth: Vec::new(), noise: Vec::new() };
        Self { settings, character, typical: (mean, variance.sqrt()), next: 0, day }
    }

    /// Continues after the reading of time `newest_ms`.
    pub fn resume(mut self, newest_ms: Option<i64>) -> Self {
        if let Some(newest_ms) = newest_ms {
            let steps = (newest_ms - self.time_ms(0)).div_euclid(self.step_ms()) + 1;
            self.next = u64::try_from(steps).unwrap_or(0);
        }
        self
    }

    /// The truth: reading number `index` without noise.
    pub fn clean(&mut self, index: u64) -> Reading {
        let slot = self.load_day(index);
        Reading { time_ms: self.time_ms(index), value: self.day.truth[slot] }
    }

    /// The meter's reading number `index`, (1 − ζ)·truth + ζ·noise, where the noise has the truth's mean and deviation.
    pub fn noisy(&mut self, index: u64) -> Reading {
        let slot = self.load_day(index);
        let (mean, deviation) = self.typical;
        let noise = mean + deviation * self.day.noise[slot];
        let share = self.settings.noise;
        Reading { time_ms: self.time_ms(index), value: (1.0 - share) * self.day.truth[slot] + share * noise }
    }

    /// The number of the next reading of [`Source::read`].
    pub fn position(&self) -> u64 {
        self.next
    }

    fn step_ms(&self) -> i64 {
        i64::from(self.settings.step_s) * 1000
    }

    fn time_ms(&self, index: u64) -> i64 {
        let first = self.settings.start_ms.div_euclid(self.step_ms()) + 1;
        first.saturating_add_unsigned(index).saturating_mul(self.step_ms())
    }

    fn load_day(&mut self, index: u64) -> usize {
        let slots = i64::from(DAY_S / self.settings.step_s);
        let step = self.time_ms(index) / self.step_ms() - 1;
        let number = step.div_euclid(slots);
        if self.day.number != number {
            let mut generator = generator(self.settings.seed, RandomStream::Noise, number);
            self.day = Day {
                number,
                truth: truth_of_day(&self.settings, &self.character, number),
                noise: (0..slots).map(|_| generator.sample(StandardNormal)).collect(),
            };
        }
        step.rem_euclid(slots) as usize
    }
}

impl Source for Household {
    fn read(&mut self, count: usize) -> Result<InputBatch, SourceError> {
        let first = self.next;
        self.next = first.saturating_add(count as u64);
        Ok(InputBatch::Readings((first..self.next).map(|index| self.noisy(index)).collect()))
    }
}

impl Character {
    fn of(seed: u64) -> Self {
        let mut generator = generator(seed, RandomStream::Character, 0);
        let mut between = |low: f64, high: f64| generator.random_range(low..high);
        let mut appliances = vec![
            Appliance { kilowatts: 2.0, hours: 0.5, start_hour: 18.0, spread_hours: 0.4, daily_chance: 0.9 },
            Appliance { kilowatts: 1.2, hours: 1.5, start_hour: 20.5, spread_hours: 0.5, daily_chance: 0.8 },
            Appliance { kilowatts: 1.0, hours: 1.5, start_hour: 10.0, spread_hours: 3.0, daily_chance: 0.35 },
        ];
        for appliance in &mut appliances {
            appliance.kilowatts *= between(0.7, 1.2);
            appliance.start_hour += between(-1.5, 1.5);
        }
        if between(0.0, 1.0) < 0.25 {
            let (kilowatts, hours) = (between(1.2, 2.2), between(2.0, 4.0));
            appliances.push(Appliance {
                kilowatts,
                hours,
                start_hour: 23.0,
                spread_hours: 0.5,
                daily_chance: 0.5,
            });
        }
        Self {
            standby: between(0.12, 0.25),
            morning: (between(6.2, 8.0), between(0.4, 0.9)),
            noon: between(0.1, 0.4),
            evening: (between(18.2, 20.2), between(0.8, 1.5)),
            weekend_delay: between(1.0, 2.5),
            heating_a_degree: between(0.02, 0.07),
            appliances,
        }
    }

    /// The people's share of the load, without appliances that run by themselves.
    fn rhythm(&self, hour: f64, weekend: bool) -> f64 {
        let bump = |centre: f64, width: f64| {
            let distance = (hour - centre + 36.0).rem_euclid(24.0) - 12.0;
            (-0.5 * (distance / width).powi(2)).exp()
        };
        let delay = if weekend { self.weekend_delay } else { 0.0 };
        let noon = if weekend { 2.0 * self.noon } else { self.noon };
        self.morning.1 * bump(self.morning.0 + delay, 1.1)
            + noon * bump(13.0, 2.0)
            + self.evening.1 * bump(self.evening.0, 1.9)
    }
}

/// Loads of one day, in kilowatts, one a step.
fn truth_of_day(settings: &HouseholdConfig, character: &Character, day: i64) -> Vec<f64> {
    let step_hours = f64::from(settings.step_s) / HOUR_S;
    let weekend = (day + 3).rem_euclid(7) >= 5;
    let activity = generator(settings.seed, RandomStream::Day, day).random_range(0.8..1.2);
    let fronts = [day, day + 1].map(|day| front(settings.weather_seed, day));
    let runs: Vec<(f64, f64, f64)> = [(day - 1, -24.0), (day, 0.0)]
        .into_iter()
        .flat_map(|(day, shift)| {
            runs_of_day(settings.seed, character, day)
                .into_iter()
                .map(move |(begin, end, power)| (begin + shift, end + shift, power))
        })
        .collect();
    (0..DAY_S / settings.step_s)
        .map(|slot| {
            let begin = f64::from(slot) * step_hours;
            let middle = begin + step_hours / 2.0;
            let running: f64 = runs
                .iter()
                .map(|(from, to, power)| {
                    power * (to.min(begin + step_hours) - from.max(begin)).max(0.0) / step_hours
                })
                .sum();
            let cold = (HEATING_BELOW - temperature(fronts, day, middle)).max(0.0);
            character.standby
                + activity * character.rhythm(middle, weekend)
                + running
                + character.heating_a_degree * cold
        })
        .collect()
}

/// Runs of the appliances that were started on `day`: from, to (hours after midnight), kilowatts.
fn runs_of_day(seed: u64, character: &Character, day: i64) -> Vec<(f64, f64, f64)> {
    let mut generator = generator(seed, RandomStream::Day, day);
    // The first number of this stream is the day's activity.
    let _activity: f64 = generator.random_range(0.8..1.2);
    let mut runs = Vec::new();
    for appliance in &character.appliances {
        let runs_today = generator.random_bool(appliance.daily_chance);
        let offset: f64 = generator.sample(StandardNormal);
        let begin = (appliance.start_hour + appliance.spread_hours * offset).clamp(0.0, 24.0);
        if runs_today {
            runs.push((begin, begin + appliance.hours, appliance.kilowatts));
        }
    }
    runs
}

/// Deviation of the weather at midnight before `day`.
fn front(weather_seed: u64, day: i64) -> f64 {
    generator(weather_seed, RandomStream::Weather, day).sample(StandardNormal)
}

/// Degrees Celsius: season, time of day, and fronts that pass within days.
fn temperature(fronts: [f64; 2], day: i64, hour: f64) -> f64 {
    let share = hour / 24.0;
    let season = ((day as f64 + share - 15.0) / 365.25 * TAU).cos();
    let time_of_day = ((hour - 15.0) / 24.0 * TAU).cos();
    10.0 - 8.5 * season + 3.0 * time_of_day + 3.5 * ((1.0 - share) * fronts[0] + share * fronts[1])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn household(seed: u64, noise: f64) -> Household {
        Household::new(HouseholdConfig { seed, noise, ..Default::default() })
    }

    fn truth(seed: u64, steps: u64) -> Vec<f64> {
        let mut household = household(seed, 0.0);
        (0..steps).map(|index| household.clean(index).value).collect()
    }

    fn correlation(a: &[f64], b: &[f64]) -> f64 {
        let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
        let (ma, mb) = (mean(a), mean(b));
        let cov: f64 = a.iter().zip(b).map(|(a, b)| (a - ma) * (b - mb)).sum();
        let var = |x: &[f64], m: f64| x.iter().map(|x| (x - m).powi(2)).sum::<f64>();
        cov / (var(a, ma) * var(b, mb)).sqrt()
    }

    #[test]
    fn without_noise_readings_are_the_truth() {
        let mut household = household(3, 0.0);
        for index in 0..2000 {
            assert_eq!(household.clean(index), household.noisy(index));
        }
    }

    #[test]
    fn noise_lowers_the_correlation_with_the_truth_step_by_step() {
        let correlations: Vec<f64> = [0.1, 0.3, 0.5, 0.7, 0.9]
            .into_iter()
            .map(|noise| {
                let mut household = household(5, noise);
                let (clean, noisy): (Vec<_>, Vec<_>) =
                    (0..2000).map(|i| (household.clean(i).value, household.noisy(i).value)).unzip();
                correlation(&clean, &noisy)
            })
            .collect();
        assert!(correlations.is_sorted_by(|a, b| a > b), "{correlations:?}");
        assert!(correlations[0] > 0.98 && correlations[4] < 0.25, "{correlations:?}");
    }

    #[test]
    fn days_resemble_days_and_not_half_days() {
        for seed in 0..8 {
            let loads = truth(seed, 96 * 28);
            let lagged = |lag: usize| correlation(&loads[lag..], &loads[..loads.len() - lag]);
            assert!(lagged(96) > 0.25, "seed {seed}: {}", lagged(96));
            assert!(lagged(96) > lagged(48) + 0.1, "seed {seed}: {} {}", lagged(96), lagged(48));
        }
    }

    #[test]
    fn people_sleep_longer_at_weekends() {
        let streets: Vec<Vec<f64>> = (0..8).map(|seed| truth(seed, 96 * 28)).collect();
        let half_past_six = 26;
        let early = |days: [usize; 2]| -> f64 {
            let slots = (0..4).flat_map(|week| days.map(|day| (week * 7 + day) * 96 + half_past_six));
            slots.map(|slot| streets.iter().flat_map(|loads| &loads[slot..slot + 6]).sum::<f64>()).sum()
        };
        assert!(early([1, 2]) > 1.1 * early([5, 6]), "{} {}", early([1, 2]), early([5, 6]));
    }

    #[test]
    fn winter_costs_more_than_summer() {
        let loads = truth(2, 96 * 200);
        let mean =
            |range: std::ops::Range<usize>| loads[range.clone()].iter().sum::<f64>() / range.len() as f64;
        assert!(mean(0..96 * 28) > 1.2 * mean(96 * 170..96 * 198));
    }

    #[test]
    fn neighbours_differ_and_resume_continues() {
        assert_ne!(truth(1, 96), truth(2, 96));
        let mut whole = household(1, 0.4);
        let InputBatch::Readings(all) = whole.read(300).unwrap() else { panic!("rows") };
        let mut again = household(1, 0.4).resume(Some(all[199].time_ms));
        assert_eq!(again.position(), 200);
        assert_eq!(again.read(100).unwrap(), InputBatch::Readings(all[200..].to_vec()));
        assert!(all.iter().all(|reading| reading.time_ms % 900_000 == 0));
    }

    proptest! {
        #[test]
        fn any_household_is_deterministic_finite_and_not_negative(
            seed: u64, index in 0u64..10_000_000, noise in 0.0f64..=1.0, step_s in prop::sample::select(vec![1u32, 10, 60, 900, 3600, 86_400]),
        ) {
            let settings = HouseholdConfig { seed, noise, step_s, ..Default::default() };
            prop_assert!(settings.check().is_ok());
            let (mut one, mut two) = (Household::new(settings.clone()), Household::new(settings));
            two.clean(index / 2);
            prop_assert_eq!(one.noisy(index), two.noisy(index));
            let load = one.clean(index).value;
            prop_assert!(load.is_finite() && load > 0.0 && load < 30.0);
            prop_assert!(one.noisy(index).value.is_finite());
        }
    }
}
