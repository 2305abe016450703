//! Half-hourly meters as whole days from one day on: what a node with the product's default model reads.

use std::path::Path;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::{DataError, DataRequest, Dataset, RecordedSeries, SamplePool, SampleTargets, files, meters};

/// Seconds of a step.
pub(crate) const STEP_S: u32 = 1800;
/// Steps of a day.
pub(crate) const DAY_STEPS: usize = 48;
/// The end of the first step: the beginning of 2013, a year that most meters have whole.
pub(crate) const FIRST_MS: i64 = 1_356_998_400_000;
/// A household with a larger share of missing readings is left out.
const MISSING_MAX: f64 = 0.01;

/// Households with whole days, chosen by seed; a sample is one reading, which is no number where it is missing.
pub(super) fn load(folder: &Path, request: &DataRequest) -> Result<SamplePool, DataError> {
    if meters::find(folder)?.is_empty() {
        return Err(files::missing(Dataset::DayAhead, folder, "MAC*.csv"));
    }
    let mut recorded = meters::households(folder)?;
    recorded.shuffle(&mut ChaCha8Rng::seed_from_u64(request.seed));
    let steps = request.samples_max.div_ceil(request.owners_max.max(1)).max(1);
    let mut features = Vec::new();
    let mut owners = Vec::new();
    for values in recorded.iter().filter_map(|series| on_grid(series, steps)).take(request.owners_max) {
        owners.push(features.len()..features.len() + steps);
        features.extend(values);
    }
    Ok(SamplePool {
        shape: vec![1],
        targets: SampleTargets::Values { of: features.clone(), scales: Vec::new() },
        recorded: features.len(),
        features,
        owners: Some(owners),
        note: None,
    })
}

/// The readings of so many steps; none where too many are missing, or most are zero.
fn on_grid(series: &RecordedSeries, steps: usize) -> Option<Vec<f32>> {
    let mut values = vec![f32::NAN; steps];
    for reading in &series.readings {
        let step = (reading.time_ms - FIRST_MS).div_euclid(i64::from(STEP_S) * 1000);
        if let Some(value) = usize::try_from(step).ok().and_then(|step| values.get_mut(step)) {
            *value = reading.value as f32;
        }
    }
    let missing = values.iter().filter(|value| value.is_nan()).count();
    let zeros = values.iter().filter(|value| **value == 0.0).count();
    (missing as f64 <= MISSING_MAX * steps as f64 && zeros * 2 < steps).then_some(values)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use evenhand_node::reading::Reading;

    use super::*;

    fn series(missing: usize) -> RecordedSeries {
        let reading = |step: usize| Reading {
            time_ms: FIRST_MS + step as i64 * 1000 * i64::from(STEP_S),
            value: (step + 1) as f64,
        };
        // One from before the first step is left out, and so is one from after the last.
        let before = Reading { time_ms: FIRST_MS - 1, value: 7.0 };
        let readings = std::iter::once(before).chain((0..301).skip(missing).map(reading)).collect();
        RecordedSeries { name: "a household".into(), readings }
    }

    #[test]
    fn readings_have_their_step_and_households_without_some_are_left_out() {
        let values = on_grid(&series(3), 300).unwrap();
        assert!(values[..3].iter().all(|value| value.is_nan()));
        assert_eq!((values[3], values[299], values.len()), (4.0, 300.0, 300));
        assert_eq!(on_grid(&series(4), 300), None);
    }
}
