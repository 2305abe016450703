//! Readings from before the node was installed, from a file.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use crate::config::{HistoryConfig, MeterQuantity, SeriesConfig};
use crate::reading::Reading;
#[cfg(feature = "csv")]
use crate::source::csv::{CsvConfig, CsvLine, CsvTable};
use crate::source::time::TimeFormat;
use crate::time_zone::LocalTimeZone;

/// Readings of a file, and what they mean.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HistoryReadings {
    pub(super) quantity: MeterQuantity,
    /// In the order of their times.
    pub(super) readings: Vec<Reading>,
    /// Lines or entries that are no readings.
    pub(super) malformed: usize,
}

/// The reason why a file gives no history.
#[derive(Debug, Error)]
pub(super) enum HistoryError {
    /// The file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// The file is something else.
    #[error("{}: {sentence}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        sentence: String,
    },
}

/// Readings of the file that the section names, for steps as in `window`.
pub(super) fn read(config: &HistoryConfig, window: &SeriesConfig) -> Result<HistoryReadings, HistoryError> {
    let path = || config.path.clone();
    let text =
        std::fs::read_to_string(&config.path).map_err(|cause| HistoryError::File { path: path(), cause })?;
    let is_json = config.path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let found = if is_json { statistics(&text, window) } else { csv(&text, window) };
    let mut found = found.map_err(|sentence| HistoryError::Content { path: path(), sentence })?;
    if found.readings.is_empty() {
        let sentence = "it has no readings; see [history] in evenhand-node print-config".into();
        return Err(HistoryError::Content { path: path(), sentence });
    }
    found.readings.iter_mut().for_each(|reading| reading.value *= config.factor);
    found.readings.sort_by_key(|reading| reading.time_ms);
    Ok(found)
}

#[cfg(feature = "csv")]
fn csv(text: &str, window: &SeriesConfig) -> Result<HistoryReadings, String> {
    let settings = CsvConfig { time_zone: Some(window.time_zone.clone()), ..CsvConfig::default() };
    let mut table = CsvTable::new(settings);
    let mut found = HistoryReadings { quantity: window.quantity, readings: Vec::new(), malformed: 0 };
    for line in text.lines() {
        match table.read(line).map_err(|error| error.to_string())? {
            CsvLine::Reading(reading) => found.readings.push(reading),
            CsvLine::Nothing => {}
            CsvLine::Row(_) | CsvLine::Malformed(_) => found.malformed += 1,
        }
    }
    Ok(found)
}

#[cfg(not(feature = "csv"))]
fn csv(_text: &str, _window: &SeriesConfig) -> Result<HistoryReadings, String> {
    Err("this program was built without the source csv; export the history as .json".into())
}

/// One entry of Home Assistant's statistics.
#[derive(Debug, Deserialize)]
struct StatisticsEntry {
    start: Value,
    end: Value,
    /// Mean of a power.
    mean: Option<f64>,
    /// Growth of an energy.
    change: Option<f64>,
}

impl StatisticsEntry {
    /// Begin and end in milliseconds since 1970, and the level in between.
    fn level(&self) -> Option<(i64, i64, f64)> {
        let time_ms = |time: &Value| match time {
            Value::String(text) => TimeFormat::Iso.parse(text, &LocalTimeZone::default()),
            // The websocket has milliseconds.
            Value::Number(number) => number.as_f64().filter(|ms| ms.abs() < 1e15).map(|ms| ms as i64),
            _ => None,
        };
        let (start_ms, end_ms) = (time_ms(&self.start)?, time_ms(&self.end)?);
        let hours = (end_ms.checked_sub(start_ms)?) as f64 / 3_600_000.0;
        let level = self.mean.or_else(|| self.change.map(|change| change / hours))?;
        (0.0 < hours && hours <= 24.0 && level.is_finite()).then_some((start_ms, end_ms, level))
    }
}

/// Home Assistant's statistics of one sensor: `[…]`, `{"sensor.x": […]}` or `{"statistics": {"sensor.x": […]}}`.
fn statistics(text: &str, window: &SeriesConfig) -> Result<HistoryReadings, String> {
    let root: Value = serde_json::from_str(text)
        .map_err(|error| format!("no JSON: {error}; export the statistics again"))?;
    let sensors = root.get("statistics").unwrap_or(&root);
    let entries = match sensors {
        Value::Array(entries) => entries,
        Value::Object(sensors) if sensors.len() > 1 => {
            let names = sensors.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(format!("it has several sensors ({names}); export one"));
        }
        Value::Object(sensors) => match sensors.values().next() {
            Some(Value::Array(entries)) => entries,
            _ => return Err("it has no list of statistics; export them by recorder.get_statistics".into()),
        },
        _ => return Err("it has no list of statistics; export them by recorder.get_statistics".into()),
    };
    let mut found = HistoryReadings { quantity: MeterQuantity::Level, readings: Vec::new(), malformed: 0 };
    let step_ms = i64::from(window.step_s.max(1)) * 1000;
    for entry in entries {
        let level = StatisticsEntry::deserialize(entry).ok().and_then(|entry| entry.level());
        let Some((start_ms, end_ms, value)) = level else {
            found.malformed += 1;
            continue;
        };
        // One reading in the middle of each step, or of an entry that is shorter than a step.
        let apart_ms = step_ms.min(end_ms - start_ms);
        let middles =
            (0..(end_ms - start_ms) / apart_ms).map(|part| start_ms + part * apart_ms + apart_ms / 2);
        found.readings.extend(middles.map(|time_ms| Reading { time_ms, value }));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn window() -> SeriesConfig {
        SeriesConfig { step_s: 1800, ..SeriesConfig::default() }
    }

    fn of_file(name: &str, text: &str) -> Result<HistoryReadings, HistoryError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        read(&HistoryConfig { path, factor: 0.5 }, &window())
    }

    #[test]
    fn statistics_of_home_assistant_become_levels_of_steps() {
        let entries = r#"[{"start": "2024-05-01T00:00:00+00:00", "end": "2024-05-01T01:00:00+00:00", "change": 3.0},
            {"start": 1714525200000, "end": 1714528800000, "mean": 4.0}, {"start": "yesterday", "end": 3, "mean": 1.0}]"#;
        for text in [
            entries.to_owned(),
            format!(r#"{{"sensor.load": {entries}}}"#),
            format!(r#"{{"statistics": {{"sensor.load": {entries}}}}}"#),
        ] {
            let found = of_file("export.json", &text).unwrap();
            let readings: Vec<(i64, f64)> = found
                .readings
                .iter()
                .map(|reading| (reading.time_ms / 1000 - 1_714_521_600, reading.value))
                .collect();
            assert_eq!(readings, [(900, 1.5), (2700, 1.5), (4500, 2.0), (6300, 2.0)]);
            assert_eq!((found.quantity, found.malformed), (MeterQuantity::Level, 1));
        }
    }

    #[test]
    fn a_table_has_the_meaning_of_the_source() {
        let found =
            of_file("old.csv", "time,value\n2024-05-01T00:30:00Z,2\n2024-05-01T00:00:00Z,1\nnoon,3\n")
                .unwrap();
        let values: Vec<f64> = found.readings.iter().map(|reading| reading.value).collect();
        assert_eq!((values, found.malformed), (vec![0.5, 1.0], 1));
    }

    #[test]
    fn what_is_no_history_is_refused_with_a_sentence() {
        for (name, text, wanted) in [
            ("a.json", "{", "no JSON"),
            ("a.json", "7", "no list"),
            ("a.json", r#"{"a": [], "b": []}"#, "several sensors (a, b)"),
            ("a.json", "[]", "no readings"),
            ("a.json", r#"[{"start": -1e300, "end": 1e300, "mean": 1.0}]"#, "no readings"),
            ("a.csv", "moment,load\n", "time"),
        ] {
            let sentence = of_file(name, text).unwrap_err().to_string();
            assert!(sentence.contains(wanted), "{sentence}");
        }
        let missing = HistoryConfig { path: "nowhere/old.csv".into(), factor: 1.0 };
        assert!(read(&missing, &window()).unwrap_err().to_string().contains("cannot read nowhere/old.csv"));
    }
}
