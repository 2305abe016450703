//! The households of a year, and when each joins.

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
    if settings.set == HouseholdSet::Choosing {
        found.iter_mut().for_each(|home| home.values.truncate(home.values.len() / 2));
    }
    let founders = ((found.len() as f64 * settings.founders).ceil() as usize).clamp(2, found.len());
    let late = found.len() - founders;
    let day = 86_400_000 / step_ms as usize;
    for (number, home) in found.iter_mut().skip(founders).enumerate() {
        home.joins = (number + 1) * settings.join_days as usize * day / late;
    }
    Ok(found)
}

/// Seconds of a step.
pub(super) fn step_s(dataset: Dataset) -> u32 {
    if dataset == Dataset::Electricity { 900 } else { 1800 }
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
