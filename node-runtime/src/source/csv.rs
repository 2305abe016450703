//! A file of comma-separated values, finished or still growing.

mod table;

use std::path::PathBuf;
use std::thread;

use serde::{Deserialize, Serialize};

pub use self::table::{Line, Table};
use super::sieve::Sieve;
use super::tail::{Next, Tail};
use super::time::TimeFormat;
use super::{PATIENCE, Source, SourceError};
use crate::reading::{Intake, Position};

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
    /// The column of the label, where rows are examples instead of measurements; empty for a series.
    pub label_column: String,
    /// What a label is.
    pub label: LabelKind,
    /// The names of the classes, counted from 0 in this order; empty where labels are numbers from 0.
    pub classes: Vec<String>,
    /// The columns of the features; empty for all but the label.
    pub feature_columns: Vec<String>,
}

/// What a label is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabelKind {
    /// One of several classes.
    #[default]
    Class,
    /// A number.
    Value,
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
            label_column: String::new(),
            label: LabelKind::Class,
            classes: Vec::new(),
            feature_columns: Vec::new(),
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

/// The lines of a CSV file as readings or labelled rows.
#[derive(Debug)]
pub struct Csv {
    follow: bool,
    labelled: bool,
    tail: Tail,
    table: Table,
    sieve: Sieve,
    /// Labelled rows that the node took in before.
    known_rows: u64,
}

impl Csv {
    /// Opens the file, and goes on behind `position`.
    pub fn open(settings: CsvSettings, position: Position) -> Result<Self, SourceError> {
        let tail = Tail::open(settings.path.clone(), settings.follow)?;
        Ok(Self {
            follow: settings.follow,
            labelled: !settings.label_column.is_empty(),
            tail,
            table: Table::new(settings),
            sieve: Sieve::behind(position),
            known_rows: position.rows,
        })
    }
}

impl Source for Csv {
    fn read(&mut self, count: usize) -> Result<Intake, SourceError> {
        let (mut readings, mut rows) = (Vec::new(), Vec::new());
        while readings.len().max(rows.len()) < count {
            let line = match self.tail.next()? {
                Next::Line(line) => self.table.read(&line)?,
                Next::Restart => {
                    self.table.restart();
                    self.sieve.expect_known(true);
                    self.known_rows = 0;
                    continue;
                }
                Next::End => break,
            };
            match line {
                Line::Reading(reading) => readings.extend(self.sieve.pass(Some(reading))),
                Line::Row(_) if self.known_rows > 0 => self.known_rows -= 1,
                Line::Row(row) => rows.push(row),
                Line::Malformed => readings.extend(self.sieve.pass(None)),
                Line::Nothing => {}
            }
        }
        if readings.is_empty() && rows.is_empty() {
            if !self.follow {
                return Err(SourceError::Ended);
            }
            thread::sleep(PATIENCE);
        }
        Ok(if self.labelled { Intake::Rows(rows) } else { Intake::Readings(readings) })
    }

    fn malformed(&self) -> u64 {
        self.sieve.malformed() + self.tail.dropped()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
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
        (folder, Csv::open(CsvSettings { path, ..settings }, Position::default()).unwrap())
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
        assert_eq!(readings(&mut source, 10), [(0, 1.5), (3600, 2.0), (1800, 9.0)]);
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
        let mut resumed =
            Csv::open(CsvSettings { path, ..settings }, Position { newest_ms: Some(30_000), rows: 0 })
                .unwrap();
        assert_eq!(readings(&mut resumed, 10), [(40, 4.0)]);
    }

    #[test]
    fn labelled_rows_go_on_where_the_node_was() {
        let labelled =
            CsvSettings { label_column: "2".into(), header: false, follow: false, ..Default::default() };
        let (folder, mut source) = source("1,0\nrubbish\n2,1\n3,0\n", labelled.clone());
        let Intake::Rows(rows) = source.read(2).unwrap() else { panic!("readings") };
        assert_eq!(rows.iter().map(|row| row.features[0]).collect::<Vec<_>>(), [1.0, 2.0]);
        assert_eq!(source.malformed(), 1);
        let path = folder.path().join("load.csv");
        let known = Position { newest_ms: None, rows: 2 };
        let mut resumed = Csv::open(CsvSettings { path, ..labelled }, known).unwrap();
        let Intake::Rows(rows) = resumed.read(9).unwrap() else { panic!("readings") };
        assert_eq!(rows.iter().map(|row| row.features[0]).collect::<Vec<_>>(), [3.0]);
    }
}
