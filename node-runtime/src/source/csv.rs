//! A file of comma-separated values, finished or still growing.

use std::path::PathBuf;
use std::thread;

use serde::{Deserialize, Serialize};

use super::tail::{Next, Tail};
use super::time::TimeFormat;
use super::{PATIENCE, Source, SourceError, number};
use crate::reading::{Intake, Reading};

/// Where the file is and what its columns mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CsvSettings {
    /// The file.
    pub path: PathBuf,
    /// Whether the first line names the columns.
    pub header: bool,
    /// The column of the time: its name, or its number from 1.
    pub time_column: String,
    /// The column of the value: its name, or its number from 1.
    pub value_column: String,
    /// What stands between two columns.
    pub delimiter: char,
    /// Whether numbers are written as `1,5`.
    pub decimal_comma: bool,
    /// How times are written.
    pub time_format: TimeFormat,
    /// Local time minus UTC, for times without an offset.
    pub utc_offset_s: i32,
    /// Whether the file still grows; if not, the source ends with it.
    pub follow: bool,
}

impl Default for CsvSettings {
    fn default() -> Self {
        Self {
            path: PathBuf::new(),
            header: true,
            time_column: "time".into(),
            value_column: "value".into(),
            delimiter: ',',
            decimal_comma: false,
            time_format: TimeFormat::Iso,
            utc_offset_s: 0,
            follow: true,
        }
    }
}

impl CsvSettings {
    /// The first setting that makes no sense, with the remedy.
    pub fn check(&self) -> Result<(), String> {
        if self.path.as_os_str().is_empty() {
            return Err("source.path is missing; name the CSV file".into());
        }
        if self.decimal_comma && self.delimiter == ',' {
            return Err(
                "source.delimiter = ',' cannot go with decimal_comma = true; such files use ';'".into()
            );
        }
        Ok(())
    }
}

/// Rows of a CSV file as readings.
#[derive(Debug)]
pub struct Csv {
    settings: CsvSettings,
    tail: Tail,
    columns: Option<(usize, usize)>,
    newest_ms: i64,
    malformed: u64,
}

impl Csv {
    /// Opens the file; rows up to the time `newest_ms` are passed over.
    pub fn open(settings: CsvSettings, newest_ms: Option<i64>) -> Result<Self, SourceError> {
        let tail = Tail::open(settings.path.clone(), settings.follow)?;
        let newest_ms = newest_ms.unwrap_or(i64::MIN);
        Ok(Self { settings, tail, columns: None, newest_ms, malformed: 0 })
    }

    fn find_columns(&self, fields: &[String]) -> Result<(usize, usize), SourceError> {
        let find = |column: &String| {
            let by_name = fields.iter().position(|field| self.settings.header && field == column);
            let by_number =
                || column.parse::<usize>().ok()?.checked_sub(1).filter(|index| *index < fields.len());
            by_name.or_else(by_number).ok_or_else(|| SourceError::Column {
                path: self.settings.path.clone(),
                column: column.clone(),
                columns: fields.join(", "),
            })
        };
        Ok((find(&self.settings.time_column)?, find(&self.settings.value_column)?))
    }

    /// The reading of one line; `None` for a header, an empty line, an old row, and one that is counted as malformed.
    fn reading(&mut self, line: &str) -> Result<Option<Reading>, SourceError> {
        let line = line.trim_start_matches('\u{feff}');
        if line.is_empty() {
            return Ok(None);
        }
        let fields = split(line, self.settings.delimiter);
        let (time, value) = match self.columns {
            Some(columns) => columns,
            None => {
                let columns = self.find_columns(&fields)?;
                self.columns = Some(columns);
                if self.settings.header {
                    return Ok(None);
                }
                columns
            }
        };
        let parsed = (|| {
            let time_ms = self.settings.time_format.parse(fields.get(time)?, self.settings.utc_offset_s)?;
            let value = number(fields.get(value)?, self.settings.decimal_comma)?;
            Some(Reading { time_ms, value })
        })();
        match parsed {
            None => self.malformed += 1,
            Some(reading) if reading.time_ms > self.newest_ms => {
                self.newest_ms = reading.time_ms;
                return Ok(Some(reading));
            }
            Some(_) => {}
        }
        Ok(None)
    }
}

impl Source for Csv {
    fn read(&mut self, count: usize) -> Result<Intake, SourceError> {
        let mut readings = Vec::new();
        while readings.len() < count {
            match self.tail.next()? {
                Next::Line(line) => readings.extend(self.reading(&line)?),
                Next::Restart => self.columns = None,
                Next::End => break,
            }
        }
        if readings.is_empty() {
            if !self.settings.follow {
                return Err(SourceError::Ended);
            }
            thread::sleep(PATIENCE);
        }
        Ok(Intake::Readings(readings))
    }

    fn malformed(&self) -> u64 {
        self.malformed + self.tail.dropped()
    }
}

/// The fields of one line; a field in double quotes may hold the delimiter, and `""` for a quote.
fn split(line: &str, delimiter: char) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        let field = fields.last_mut().expect("there is always a field");
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                field.push('"');
                characters.next();
            }
            '"' if quoted || field.trim().is_empty() => quoted = !quoted,
            character if character == delimiter && !quoted => fields.push(String::new()),
            character => field.push(character),
        }
    }
    fields.iter().map(|field| field.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::fs::{self, OpenOptions};
    use std::io::Write;

    fn readings(source: &mut Csv, count: usize) -> Vec<(i64, f64)> {
        match source.read(count).unwrap() {
            Intake::Readings(readings) => {
                readings.iter().map(|reading| (reading.time_ms / 1000, reading.value)).collect()
            }
            Intake::Rows(_) => panic!("rows"),
        }
    }

    fn source(text: &str, settings: CsvSettings) -> (tempfile::TempDir, Csv) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("load.csv");
        fs::write(&path, text).unwrap();
        (folder, Csv::open(CsvSettings { path, ..settings }, None).unwrap())
    }

    #[test]
    fn a_european_export_with_a_gap_and_rubbish() {
        let text = "\u{feff}Zeit;Zähler;\"Leistung; kW\"\r\n1970-01-01 01:00;a;1,5\r\n1970-01-01 01:15;a;-\r\n\r\n1970-01-01 02:00;a; 2 \r\n1970-01-01 01:30;a;9";
        let settings = CsvSettings {
            time_column: "Zeit".into(),
            value_column: "Leistung; kW".into(),
            delimiter: ';',
            decimal_comma: true,
            utc_offset_s: 3600,
            follow: false,
            ..Default::default()
        };
        let (_folder, mut source) = source(text, settings);
        assert_eq!(readings(&mut source, 10), [(0, 1.5), (3600, 2.0)]);
        assert!(matches!(source.read(10), Err(SourceError::Ended)));
        assert_eq!(source.malformed(), 1);
    }

    #[test]
    fn columns_by_number_and_counts_respected() {
        let settings = CsvSettings {
            header: false,
            time_column: "2".into(),
            value_column: "1".into(),
            time_format: TimeFormat::UnixS,
            follow: false,
            ..Default::default()
        };
        let (_folder, mut source) = source("1.5,10\n2.5,20\n3.5,30", settings);
        assert_eq!(readings(&mut source, 2), [(10, 1.5), (20, 2.5)]);
        assert_eq!(readings(&mut source, 2), [(30, 3.5)]);
    }

    #[test]
    fn a_missing_column_is_named_with_those_there() {
        let (_folder, mut source) =
            source("time,load\n", CsvSettings { follow: false, ..Default::default() });
        let error = source.read(1).unwrap_err().to_string();
        assert!(error.contains("\"value\"") && error.contains("time, load"), "{error}");
    }

    #[test]
    fn a_growing_file_is_followed_across_half_lines_and_rotation() {
        let settings = CsvSettings { time_format: TimeFormat::UnixS, ..Default::default() };
        let (folder, mut source) = source("time,value\n10,1\n20,", settings.clone());
        let path = folder.path().join("load.csv");
        assert_eq!(readings(&mut source, 10), [(10, 1.0)]);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"2\n30,3\n").unwrap();
        assert_eq!(readings(&mut source, 10), [(20, 2.0), (30, 3.0)]);
        fs::rename(&path, folder.path().join("old.csv")).unwrap();
        fs::write(&path, "time,value\n30,3\n40,4\n").unwrap();
        let seen: Vec<_> = std::iter::repeat_with(|| readings(&mut source, 10)).take(3).flatten().collect();
        assert_eq!(seen, [(40, 4.0)]);
        let mut resumed = Csv::open(CsvSettings { path, ..settings }, Some(30_000)).unwrap();
        assert_eq!(readings(&mut resumed, 10), [(40, 4.0)]);
    }

    proptest! {
        #[test]
        fn any_bytes_give_finite_readings_in_order(bytes in prop::collection::vec(any::<u8>(), 0..300), lines in "([0-9.,\";eE-]{0,12},[0-9.]{0,9}\n){0,20}") {
            for bytes in [bytes.as_slice(), lines.as_bytes()] {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("any.csv");
                fs::write(&path, bytes).unwrap();
                let settings = CsvSettings {
                    path, header: false, time_column: "1".into(), value_column: "2".into(),
                    time_format: TimeFormat::UnixS, follow: false, ..Default::default()
                };
                let mut source = Csv::open(settings, None).unwrap();
                if let Ok(Intake::Readings(readings)) = source.read(100) {
                    prop_assert!(readings.iter().all(|reading| reading.value.is_finite()));
                    prop_assert!(readings.is_sorted_by(|a, b| a.time_ms < b.time_ms));
                }
            }
        }
    }
}
