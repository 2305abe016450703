//! Half-hourly meters of households, as Low Carbon London publishes them: each household is one owner.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use evenhand_node::reading::Reading;
use evenhand_node::source::time::iso_text;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::files::{self, DataFile};
use super::series_table::{self, MeasuredQuantity, SeriesColumns};
use super::windows::{Samples, WindowCut};
use super::{AsPublished, DataError, DataRequest, Dataset, FormatError, SamplePool, SampleTargets};

/// Samples begin after two weeks.
const CUT: WindowCut = WindowCut { step_s: 1800, time_zone: "UTC", warm_up: 14 * 48, stride: 1 };
/// A meter with less than a month of readings is left out.
const READINGS_MIN: usize = 30 * 48;

const COLUMNS: SeriesColumns = SeriesColumns {
    owner: Some("LCLid"),
    time: &["tstp", "DateTime"],
    value: &["energy(kWh/hh)", "KWH/hh (per half hour)"],
    // 2 MW: no household, whether it takes or gives.
    quantity: MeasuredQuantity { name: "kWh in half an hour", low: -1000.0, high: 1000.0 },
};

/// The files that are there.
pub(super) fn find(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let starts = ["MAC", "block_", "CC_LCL", "LCL"];
    let fits = |name: &str| name.ends_with(".csv") && starts.iter().any(|start| name.starts_with(start));
    files::find(Dataset::Meters, folder, fits)
}

pub(super) fn load(folder: &Path, request: &DataRequest) -> Result<SamplePool, DataError> {
    let mut paths = find(folder)?;
    if paths.is_empty() {
        return Err(files::missing(Dataset::Meters, folder, "MAC*.csv"));
    }
    if request.as_published == AsPublished::Paper {
        paths.shuffle(&mut ChaCha8Rng::seed_from_u64(request.seed));
    }
    let sources: Vec<DataFile> = paths.into_iter().map(|path| DataFile::new(Dataset::Meters, path)).collect();
    let samples_max = request.samples_max.div_ceil(request.owners_max.max(1)).max(1);
    let mut samples = Samples::default();
    let mut owners = Vec::new();
    let mut left_out = Vec::new();
    // A household may be in several files: its readings wait until the last of them is read.
    let mut waiting = BTreeMap::new();
    for (number, complete) in last_seen(&sources)?.into_iter().enumerate() {
        if owners.len() >= request.owners_max.max(1) {
            break;
        }
        collect(&sources, number, &mut waiting)?;
        for owner in complete {
            let readings = series(&sources, &owner, waiting.remove(&owner).unwrap_or_default())?;
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
        return Err(DataFile::new(Dataset::Meters, folder.to_owned()).empty(None, reason));
    }
    left_out.sort_unstable();
    let recorded = samples.values.len();
    Ok(SamplePool {
        shape: Samples::shape(),
        features: samples.features,
        targets: SampleTargets::Values { of: samples.values, scales: samples.scales },
        owners: Some(owners),
        recorded,
        note: (!left_out.is_empty())
            .then(|| format!("left out, since too short or mostly zero: {}", left_out.join(", "))),
    })
}

/// By file: the households that are in it and in no later one, in the order of their names.
fn last_seen(sources: &[DataFile]) -> Result<Vec<Vec<String>>, DataError> {
    let mut last: BTreeMap<String, usize> = BTreeMap::new();
    for (number, source) in sources.iter().enumerate() {
        // Lines of one household follow each other.
        let mut latest = String::new();
        series_table::owners(source, &COLUMNS, |owner| {
            if owner != latest {
                latest = owner.to_owned();
                last.insert(latest.clone(), number);
            }
        })?;
    }
    let mut households = vec![Vec::new(); sources.len()];
    last.into_iter().for_each(|(owner, number)| households[number].push(owner));
    Ok(households)
}

/// A reading with its file and line.
#[derive(Debug, Clone, Copy)]
struct SourcedReading {
    reading: Reading,
    file: u32,
    line: u32,
}

/// Adds the readings of a file to those of its households.
fn collect(
    sources: &[DataFile],
    number: usize,
    households: &mut BTreeMap<String, Vec<SourcedReading>>,
) -> Result<(), DataError> {
    series_table::read(&sources[number], &COLUMNS, |line| {
        if let Some(reading) = line.reading(0) {
            let origin = SourcedReading { reading, file: number as u32, line: line.number as u32 };
            households.entry(line.owner).or_default().push(origin);
        }
        Ok(())
    })
}

/// All readings of a household in the order of time; what is recorded twice counts once.
fn series(
    sources: &[DataFile],
    owner: &str,
    mut readings: Vec<SourcedReading>,
) -> Result<Vec<Reading>, DataError> {
    readings.sort_by_key(|origin| origin.reading.time_ms);
    let agree = |a: &SourcedReading, b: &SourcedReading| {
        a.reading.time_ms != b.reading.time_ms || a.reading.value == b.reading.value
    };
    if let Some([before, found]) = readings.windows(2).find(|pair| !agree(&pair[0], &pair[1])) {
        let cause = FormatError::Contradiction {
            owner: owner.to_owned(),
            time: iso_text(found.reading.time_ms),
            found: found.reading.value.to_string(),
            other: format!("{}, line {},", sources[before.file as usize].path().display(), before.line),
            before: before.reading.value.to_string(),
        };
        return Err(sources[found.file as usize].at_line(u64::from(found.line), cause));
    }
    readings.dedup_by_key(|origin| origin.reading.time_ms);
    Ok(readings.iter().map(|origin| origin.reading).collect())
}
