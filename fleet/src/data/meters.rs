//! Half-hourly meters of households, as Low Carbon London publishes them: each household is one owner.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use evenhand_node::reading::Reading;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::files::{self, Source};
use super::table::{self, Columns, Quantity};
use super::windows::{Cut, Samples};
use super::{Answers, DataError, Dataset, Pool, Request};
use crate::experiment::setup::AsPublished;

/// Samples begin after two weeks.
const CUT: Cut = Cut { step_s: 1800, utc_offset_s: 0, warm_up: 14 * 48, stride: 1 };
/// A meter with less than a month of readings is left out.
const READINGS_MIN: usize = 30 * 48;

const COLUMNS: Columns = Columns {
    owner: Some("LCLid"),
    time: &["tstp", "DateTime"],
    value: &["energy(kWh/hh)", "KWH/hh (per half hour)"],
    // 2 MW: no household, whether it takes or gives.
    quantity: Quantity { name: "kWh in half an hour", low: -1000.0, high: 1000.0 },
};

/// The files that are there.
pub(super) fn find(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let starts = ["MAC", "block_", "CC_LCL", "LCL"];
    let fits = |name: &str| name.ends_with(".csv") && starts.iter().any(|start| name.starts_with(start));
    files::find(Dataset::Meters, folder, fits)
}

pub(super) fn load(folder: &Path, request: &Request) -> Result<Pool, DataError> {
    let mut paths = find(folder)?;
    if paths.is_empty() {
        return Err(files::missing(Dataset::Meters, folder, "MAC*.csv"));
    }
    if request.as_published == AsPublished::Paper {
        paths.shuffle(&mut ChaCha8Rng::seed_from_u64(request.seed));
    }
    let samples_max = request.samples_max.div_ceil(request.owners_max.max(1)).max(1);
    let mut samples = Samples::default();
    let mut owners = Vec::new();
    let mut left_out = Vec::new();
    for path in &paths {
        if owners.len() >= request.owners_max.max(1) {
            break;
        }
        for (owner, readings) in households(&Source::new(Dataset::Meters, path.clone()))? {
            let zeros = readings.iter().filter(|reading| reading.value == 0.0).count();
            if readings.len() < READINGS_MIN || zeros * 2 > readings.len() {
                left_out.push(owner);
                continue;
            }
            let begin = samples.values.len();
            CUT.take(&readings, samples_max, |_| true, &mut samples);
            match samples.values.len() {
                end if end > begin => owners.push(begin..end),
                _ => left_out.push(owner),
            }
        }
    }
    if samples.values.is_empty() {
        let reason = "every household has less than 30 days of readings, or mostly zeros".to_owned();
        return Err(Source::new(Dataset::Meters, folder.to_owned()).empty(None, reason));
    }
    left_out.sort_unstable();
    let recorded = samples.values.len();
    Ok(Pool {
        shape: Samples::shape(),
        features: samples.features,
        answers: Answers::Values { of: samples.values, scales: samples.scales },
        owners: Some(owners),
        recorded,
        note: (!left_out.is_empty())
            .then(|| format!("left out, since too short or mostly zero: {}", left_out.join(", "))),
    })
}

/// The readings of each household in a file, in the order of time; a line that repeats a time is dropped.
fn households(source: &Source) -> Result<BTreeMap<String, Vec<Reading>>, DataError> {
    let mut households: BTreeMap<String, Vec<Reading>> = BTreeMap::new();
    table::read(source, &COLUMNS, |line| {
        if let Some(reading) = line.reading(0) {
            households.entry(line.owner).or_default().push(reading);
        }
        Ok(())
    })?;
    for readings in households.values_mut() {
        readings.sort_by_key(|reading| reading.time_ms);
        readings.dedup_by_key(|reading| reading.time_ms);
    }
    Ok(households)
}
