//! The load of Germany every 15 minutes, as Open Power System Data publishes it, or another file with the same quantity.

use std::path::{Path, PathBuf};

use evenhand_node::reading::Reading;
use evenhand_node::source::time::iso_text;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::files::{self, DataFile};
use super::series_table::{self, MeasuredQuantity, SeriesColumns};
use super::windows::{Samples, WindowCut};
use super::{AsPublished, DataError, DataRequest, Dataset, FormatError, SamplePool, SampleTargets};

const STEP_MS: i64 = 900_000;
const DAY: usize = 96;

/// The published name, and that of a file with the same index from another publisher.
const NAMES: [&str; 2] = ["time_series_15min_singleindex.csv", "de_load_15min_opsd_index.csv"];
const LOADS: [&str; 2] = ["DE_load_actual_entsoe_transparency", "DE_load_MW"];

/// Germany never took a tenth of the highest that is believed.
const LOAD: MeasuredQuantity = MeasuredQuantity { name: "load in MW", low: 0.0, high: 1e6 };

/// The remark beside every figure from the other publisher's file.
pub(super) const SUBSTITUTE: &str = "German load as SMARD publishes it, not OPSD's revision";

/// Samples are taken at every third point, as the published code does; in the paper's way, from two weeks on.
const CUT: WindowCut = WindowCut { step_s: 900, time_zone: "+01:00", warm_up: 14 * DAY, stride: 3 };

/// Rows that the published code leaves out at the beginning.
const TRIMMED: usize = 100;
/// Its first sample lies a year and a step behind them.
const YEAR: usize = 365 * DAY;
/// Steps back to its inputs, after the one of a year ago: one to seven days, the last five steps.
const LAGS_CODE: [usize; 12] = [DAY, 2 * DAY, 3 * DAY, 4 * DAY, 5 * DAY, 6 * DAY, 7 * DAY, 5, 4, 3, 2, 1];
/// Quantities in each of its rows: the load is the first; the others are not in these files and are 0.
const COLUMNS_CODE: usize = 40;

/// The file that is there, and whether it is the other publisher's.
pub(super) fn find(folder: &Path) -> Result<Option<(PathBuf, bool)>, DataError> {
    for (name, is_substitute) in NAMES.into_iter().zip([false, true]) {
        let found = files::find(Dataset::Electricity, folder, |file| file == name)?.into_iter().next();
        if let Some(path) = found {
            return Ok(Some((path, is_substitute)));
        }
    }
    Ok(None)
}

pub(super) fn load(folder: &Path, request: &DataRequest) -> Result<SamplePool, DataError> {
    let (path, is_substitute) =
        find(folder)?.ok_or_else(|| files::missing(Dataset::Electricity, folder, NAMES[0]))?;
    let source = DataFile::new(Dataset::Electricity, path);
    let readings = read(&source)?;
    let (shape, samples, recorded) = match request.as_published {
        AsPublished::Paper => windows(&readings, request),
        AsPublished::Code => as_the_code(&readings, request),
    };
    if samples.values.is_empty() {
        let before = match request.as_published {
            AsPublished::Paper => CUT.warm_up,
            AsPublished::Code => TRIMMED + YEAR + 1,
        };
        let reason = format!("{} readings, and the first sample comes after {before}", readings.len());
        return Err(source.empty(None, reason));
    }
    Ok(SamplePool {
        shape,
        features: samples.features,
        targets: SampleTargets::Values { of: samples.values, scales: samples.scales },
        owners: None,
        recorded,
        note: is_substitute.then(|| SUBSTITUTE.to_owned()),
    })
}

/// All readings in the order of time. A time names the beginning of an interval in the file, and its end here.
fn read(source: &DataFile) -> Result<Vec<Reading>, DataError> {
    let columns = SeriesColumns { owner: None, time: &["utc_timestamp"], value: &LOADS, quantity: LOAD };
    let mut readings: Vec<Reading> = Vec::new();
    series_table::read(source, &columns, |line| {
        let Some(reading) = line.reading(STEP_MS) else { return Ok(()) };
        if let Some(last) = readings.last().filter(|last| last.time_ms >= reading.time_ms) {
            let text = format!("time does not advance after {}", iso_text(last.time_ms - STEP_MS));
            return Err(source.at_line(line.number, FormatError::Csv(text)));
        }
        readings.push(reading);
        Ok(())
    })?;
    Ok(readings)
}

/// The paper's way: what a node with the shipped network would see, normalised by what was known at the time.
fn windows(readings: &[Reading], request: &DataRequest) -> (Vec<usize>, Samples, usize) {
    let recorded = CUT.take(readings, usize::MAX, |_| false, &mut Samples::default());
    let mut chosen = request.choose(recorded).into_iter().peekable();
    let mut samples = Samples::default();
    CUT.take(readings, recorded, |number| chosen.next_if_eq(&number).is_some(), &mut samples);
    (Samples::shape(), samples, recorded)
}

/// The published code's way: 13 earlier loads, normalised by the whole series, which looks ahead.
fn as_the_code(readings: &[Reading], request: &DataRequest) -> (Vec<usize>, Samples, usize) {
    let readings = &readings[TRIMMED.min(readings.len())..];
    let count = readings.len().max(1) as f64;
    let mean = readings.iter().map(|reading| reading.value).sum::<f64>() / count;
    let variance = readings.iter().map(|reading| (reading.value - mean).powi(2)).sum::<f64>() / count;
    let deviation = if variance > 0.0 { variance.sqrt() } else { 1.0 };
    let normalised = |at: usize| ((readings[at].value - mean) / deviation) as f32;
    let targets = (YEAR + 1..readings.len()).step_by(CUT.stride);
    let targets: Vec<(usize, usize)> =
        targets.filter_map(|at| Some((at, a_year_before(readings, at)?))).collect();
    let mut samples = Samples::default();
    for (target, a_year_before) in request.choose(targets.len()).into_iter().map(|at| targets[at]) {
        let lagged = LAGS_CODE.map(|lag| target - lag);
        for at in std::iter::once(a_year_before).chain(lagged) {
            samples.features.push(normalised(at));
            samples.features.extend([0.0; COLUMNS_CODE - 1]);
        }
        samples.values.push(normalised(target));
        samples.scales.push((mean as f32, deviation as f32));
    }
    (vec![(1 + LAGS_CODE.len()) * COLUMNS_CODE], samples, targets.len())
}

/// The position of the reading at the same date and time a year before; of 29 February, that of the 28th.
fn a_year_before(readings: &[Reading], at: usize) -> Option<usize> {
    let begin = Timestamp::from_millisecond(readings[at].time_ms - STEP_MS).ok()?.to_zoned(TimeZone::UTC);
    let time_ms = begin.checked_sub(1.year()).ok()?.timestamp().as_millisecond() + STEP_MS;
    readings[..at].binary_search_by_key(&time_ms, |reading| reading.time_ms).ok()
}
