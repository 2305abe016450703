//! The households of a year, and when each joins.

use evenhand_node::forecast::LocalTime;
use evenhand_node::time_zone::LocalTimeZone;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::YearError;
use super::settings::{HouseholdSet, YearSettings};
use crate::data::{Dataset, RecordedSeries};

/// Households on which settings are chosen.
const CHOOSING: usize = 40;
/// A household with more missing readings is left out.
const MISSING_MAX: f64 = 0.01;

/// One household on the common grid of steps.
#[derive(Debug, Clone)]
pub(super) struct YearHousehold {
    pub(super) name: String,
    /// The end of the first step of the grid, in milliseconds since 1970.
    pub(super) first_ms: i64,
    /// Seconds of a step.
    pub(super) step_s: u32,
    /// Its clocks.
    pub(super) clocks: LocalTime,
    /// A value for each step, NaN where nothing was measured.
    pub(super) values: Vec<f32>,
    /// The step at which it joins; nothing before is known to anybody.
    pub(super) joins: usize,
}

/// The chosen households; the step of their grid is that of the data set.
pub(super) fn choose(
    settings: &YearSettings,
    recorded: &[RecordedSeries],
) -> Result<Vec<YearHousehold>, YearError> {
    let step_ms = i64::from(step_s(settings.dataset)) * 1000;
    let (begin, end) = (settings.period_ms.start, settings.period_ms.end);
    let mut found = match settings.dataset {
        Dataset::Electricity => cut(recorded, step_ms),
        _ => recorded.iter().filter_map(|series| on_grid(series, begin, end, step_ms)).collect(),
    };
    let mut rng = ChaCha8Rng::seed_from_u64(settings.seed);
    if settings.dataset != Dataset::Electricity {
        found.shuffle(&mut rng);
        let choosing = CHOOSING.min(found.len() / 2);
        match settings.set {
            HouseholdSet::Choosing => found.truncate(choosing),
            HouseholdSet::Others => drop(found.drain(..choosing)),
            HouseholdSet::All => {}
        }
        found.truncate(settings.homes_max.unwrap_or(usize::MAX));
    }
    if found.len() < 2 {
        return Err(YearError::Households { found: found.len() });
    }
    found.iter_mut().for_each(|home| home.clocks = clocks(settings.dataset, home.first_ms));
    if settings.set == HouseholdSet::Choosing {
        found.iter_mut().for_each(|home| home.values.truncate(home.values.len() / 2));
    }
    let founders = ((found.len() as f64 * settings.founders).ceil() as usize).clamp(2, found.len());
    let late = found.len() - founders;
    let day = 86_400_000 / step_ms as usize;
    let days = found[0].values.len() / day;
    // Nobody joins so late that its first ten weeks are not judged.
    let join_days = (settings.join_days as usize).min(days / 2);
    for (number, home) in found.iter_mut().skip(founders).enumerate() {
        home.joins = (number + 1) * join_days * day / late;
    }
    Ok(found)
}

/// Seconds of a step.
pub(super) fn step_s(dataset: Dataset) -> u32 {
    if dataset == Dataset::Electricity { 900 } else { 1800 }
}

/// The clocks of London or Berlin around the two years from `first_ms` on.
fn clocks(dataset: Dataset, first_ms: i64) -> LocalTime {
    let name = if dataset == Dataset::Electricity { "Europe/Berlin" } else { "Europe/London" };
    let year_ms = 366 * 86_400_000;
    // Both are in the database within the program.
    let zone = LocalTimeZone::named(name).unwrap_or_default();
    zone.clocks(first_ms - year_ms, first_ms + 2 * year_ms)
}

/// The readings between two times, one a step; none where too many are missing, or most are zero.
fn on_grid(series: &RecordedSeries, begin: i64, end: i64, step_ms: i64) -> Option<YearHousehold> {
    let steps = usize::try_from((end - begin) / step_ms).ok()?;
    let mut values = vec![f32::NAN; steps];
    for reading in &series.readings {
        if reading.time_ms >= begin && reading.time_ms < end {
            values[((reading.time_ms - begin) / step_ms) as usize] = reading.value as f32;
        }
    }
    let missing = values.iter().filter(|value| value.is_nan()).count();
    let zero = values.iter().filter(|value| **value == 0.0).count();
    let mean = values.iter().filter(|value| !value.is_nan()).sum::<f32>() / (steps - missing).max(1) as f32;
    let complete = (missing as f64) < MISSING_MAX * steps as f64;
    (complete && zero * 2 < steps && mean > 0.01).then(|| YearHousehold {
        name: series.name.clone(),
        first_ms: begin,
        step_s: (step_ms / 1000) as u32,
        clocks: LocalTime::default(),
        values,
        joins: 0,
    })
}

/// One long series as several nodes: each has another year of it.
fn cut(recorded: &[RecordedSeries], step_ms: i64) -> Vec<YearHousehold> {
    let year_ms = 365 * 86_400_000;
    let mut pieces = Vec::new();
    for series in recorded {
        let (Some(first), Some(last)) = (series.readings.first(), series.readings.last()) else { continue };
        for number in 0..(last.time_ms - first.time_ms) / year_ms {
            let begin = first.time_ms + number * year_ms;
            let piece = on_grid(series, begin, begin + year_ms, step_ms);
            pieces
                .extend(piece.map(|home| YearHousehold { name: format!("{}-{number}", home.name), ..home }));
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use evenhand_node::reading::Reading;
    use evenhand_node::source::time::TimeFormat;

    use super::*;

    #[test]
    fn clocks_change_on_the_last_sundays_of_march_and_october() {
        let of = |text| TimeFormat::Iso.parse(text, &LocalTimeZone::default()).expect("a time");
        let london = clocks(Dataset::Meters, of("2013-01-01T00:00:00Z"));
        let offset = |text| london.offset_s(of(text));
        assert_eq!(offset("2013-01-01T00:00:00Z"), 0);
        assert_eq!(offset("2013-03-31T00:59:00Z"), 0);
        assert_eq!(offset("2013-03-31T01:00:00Z"), 3600);
        assert_eq!(offset("2013-10-27T00:59:00Z"), 3600);
        assert_eq!(offset("2013-10-27T01:00:00Z"), 0);
        assert_eq!(
            clocks(Dataset::Electricity, of("2016-01-01T00:00:00Z")).offset_s(of("2016-07-01T00:00:00Z")),
            7200
        );
    }

    fn series(name: &str, days: usize) -> RecordedSeries {
        let reading =
            |at: usize| Reading { time_ms: at as i64 * 1_800_000, value: 0.2 + (at % 48) as f64 / 100.0 };
        RecordedSeries { name: name.into(), readings: (0..days * 48).map(reading).collect() }
    }

    #[test]
    fn no_household_is_chosen_on_and_reported() {
        let recorded: Vec<RecordedSeries> =
            (0..100).map(|number| series(&format!("home-{number}"), 70)).collect();
        let names = |set| {
            let settings = YearSettings { set, ..YearSettings::example(70) };
            let found = choose(&settings, &recorded).expect("households");
            found.into_iter().map(|home| home.name).collect::<Vec<String>>()
        };
        let (choosing, others) = (names(HouseholdSet::Choosing), names(HouseholdSet::Others));
        assert_eq!((choosing.len(), others.len()), (40, 60));
        assert!(choosing.iter().all(|name| !others.contains(name)));
    }

    #[test]
    fn a_household_with_gaps_is_left_out_and_late_ones_join_in_turn() {
        let mut recorded: Vec<RecordedSeries> =
            (0..8).map(|number| series(&format!("home-{number}"), 70)).collect();
        recorded[3].readings.drain(100..200);
        let settings = YearSettings { set: HouseholdSet::All, join_days: 20, ..YearSettings::example(70) };
        let found = choose(&settings, &recorded).expect("households");
        assert_eq!(found.len(), 7);
        assert!(found.iter().all(|home| home.name != "home-3"));
        let joins: Vec<usize> = found.iter().map(|home| home.joins).collect();
        assert_eq!(joins, [0, 0, 0, 0, 0, 0, 20 * 48]);
    }
}
