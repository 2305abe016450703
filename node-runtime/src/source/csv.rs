//! A file of comma-separated values, finished or still growing.
#![cfg(feature = "csv")]
// Explanations are printed as they stand: names of sections in brackets are no links.
#![allow(rustdoc::broken_intra_doc_links)]

mod table;

use std::path::PathBuf;
use std::thread;

use serde::{Deserialize, Serialize};

pub use self::table::{CsvLine, CsvTable};
use super::duplicate_filter::DuplicateFilter;
use super::tail::{Tail, TailEvent};
use super::time::TimeFormat;
use super::{Intake, READ_TIMEOUT, Source, SourceContext, SourceError, SourceKind};
use crate::config::section::section;
use crate::reading::{InputBatch, SourcePosition};
use crate::time_zone::LocalTimeZone;

section! {
    /// A CSV file and the meaning of its columns.
    pub struct CsvConfig {
        /// The file.
        pub path: PathBuf = PathBuf::new() => "\"/var/lib/meter/load.csv\"",
        /// The first line names the columns.
        pub header: bool = true,
        /// The column of the time: its name, or its number from 1.
        pub time_column: String = "time".into(),
        /// The column of the value: its name, or its number from 1.
        pub value_column: String = "value".into(),
        /// Separator of two columns.
        pub delimiter: char = ',',
        /// Numbers are written as 1,5.
        pub decimal_comma: bool = false,
        /// Format of times: "iso", "unix-s", "unix-ms" or "day-first" (31.12.2024 23:45).
        pub time_format: TimeFormat = TimeFormat::Iso,
        /// Time zone of times without an offset, if it is not the window's.
        pub time_zone: Option<LocalTimeZone> = None => "\"Europe/London\"",
        /// The file still grows; if not, the source ends with it.
        pub follow: bool = true,
        /// The column of the label, for labelled rows instead of a series, together with [rows].
        pub label_column: String = String::new(),
        /// Kind of label: "class" or "value".
        pub label: LabelKind = LabelKind::Class,
        /// Names of the classes, counted from 0 in this order; [] where labels are such numbers.
        pub classes: Vec<String> = Vec::new(),
        /// The columns of the features; [] for all but the label.
        pub feature_columns: Vec<String> = Vec::new(),
    }
}

/// Kind of a label.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabelKind {
    /// One of several classes.
    #[default]
    Class,
    /// A number.
    Value,
}

impl SourceKind for CsvConfig {
    fn check(&self) -> Result<(), String> {
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

    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn open(&self, context: &SourceContext<'_>) -> Result<Box<dyn Source>, SourceError> {
        Ok(Box::new(Csv::open(
            CsvConfig { time_zone: Some(context.time_zone(self.time_zone.as_ref())), ..self.clone() },
            context.position,
        )?))
    }

    fn is_recorded(&self) -> bool {
        !self.follow
    }

    fn is_labelled(&self) -> bool {
        !self.label_column.is_empty()
    }
}

/// The lines of a CSV file as readings or labelled rows.
#[derive(Debug)]
pub struct Csv {
    follow: bool,
    labelled: bool,
    tail: Tail,
    table: CsvTable,
    filter: DuplicateFilter,
    intake: Intake,
    /// Labelled rows that the node has received before.
    known_rows: u64,
}

impl Csv {
    /// Opens the file, and continues after `position`.
    pub fn open(settings: CsvConfig, position: SourcePosition) -> Result<Self, SourceError> {
        let tail = Tail::open(settings.path.clone(), settings.follow)?;
        Ok(Self {
            follow: settings.follow,
            labelled: !settings.label_column.is_empty(),
            tail,
            table: CsvTable::new(settings),
            filter: DuplicateFilter::after(position),
            intake: Intake::default(),
            known_rows: position.rows,
        })
    }
}

impl Source for Csv {
    fn read(&mut self, count: usize) -> Result<InputBatch, SourceError> {
        let (mut readings, mut rows) = (Vec::new(), Vec::new());
        let dropped = self.tail.dropped();
        while readings.len().max(rows.len()) < count {
            let line = match self.tail.next()? {
                TailEvent::Line(line) => line,
                TailEvent::Restart => {
                    self.table.restart();
                    self.filter.expect_duplicates(true);
                    self.known_rows = 0;
                    continue;
                }
                TailEvent::End => break,
            };
            match self.table.read(&line)? {
                CsvLine::Reading(reading) => {
                    self.intake.record(|| line, Ok(reading));
                    readings.extend(self.filter.pass(reading));
                }
                CsvLine::Row(_) if self.known_rows > 0 => self.known_rows -= 1,
                CsvLine::Row(row) => rows.push(row),
                CsvLine::Malformed(reason) => {
                    self.intake.record(|| line, Err(reason));
                }
                CsvLine::Nothing => {}
            }
        }
        self.intake.dropped(dropped, self.tail.dropped());
        if readings.is_empty() && rows.is_empty() {
            if !self.follow {
                return Err(SourceError::Ended);
            }
            thread::sleep(READ_TIMEOUT);
        }
        Ok(if self.labelled { InputBatch::Rows(rows) } else { InputBatch::Readings(readings) })
    }

    fn intake(&self) -> Option<&Intake> {
        Some(&self.intake)
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
            InputBatch::Readings(readings) => {
                readings.iter().map(|reading| (reading.time_ms / 1000, reading.value)).collect()
            }
            InputBatch::Rows(_) => panic!("rows"),
        }
    }

    fn source(text: &str, settings: CsvConfig) -> (tempfile::TempDir, Csv) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("load.csv");
        fs::write(&path, text).unwrap();
        (folder, Csv::open(CsvConfig { path, ..settings }, SourcePosition::default()).unwrap())
    }

    #[test]
    fn a_european_export_with_a_gap_and_rubbish() {
        let text = "\u{feff}Zeit;Zähler;\"Leistung; kW\"\r\n1970-01-01 01:00;a;1,5\r\n1970-01-01 01:15;a;-\r\n\r\n1970-01-01 02:00;a; 2 \r\n1970-01-01 01:30;a;9";
        let settings = CsvConfig {
            time_column: "Zeit".into(),
            value_column: "Leistung; kW".into(),
            delimiter: ';',
            decimal_comma: true,
            time_zone: LocalTimeZone::named("+01:00").ok(),
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
        let settings = CsvConfig {
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
        let (_folder, mut source) = source("time,load\n", CsvConfig { follow: false, ..Default::default() });
        let error = source.read(1).unwrap_err().to_string();
        assert!(error.contains("\"value\"") && error.contains("time, load"), "{error}");
    }

    #[test]
    fn a_growing_file_is_followed_across_half_lines_and_rotation() {
        let settings = CsvConfig { time_format: TimeFormat::UnixS, ..Default::default() };
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
            Csv::open(CsvConfig { path, ..settings }, SourcePosition { newest_ms: Some(30_000), rows: 0 })
                .unwrap();
        assert_eq!(readings(&mut resumed, 10), [(40, 4.0)]);
    }

    #[test]
    fn labelled_rows_go_on_where_the_node_was() {
        let labelled =
            CsvConfig { label_column: "2".into(), header: false, follow: false, ..Default::default() };
        let (folder, mut source) = source("1,0\nrubbish\n2,1\n3,0\n", labelled.clone());
        let InputBatch::Rows(rows) = source.read(2).unwrap() else { panic!("readings") };
        assert_eq!(rows.iter().map(|row| row.features[0]).collect::<Vec<_>>(), [1.0, 2.0]);
        assert_eq!(source.malformed(), 1);
        let path = folder.path().join("load.csv");
        let known = SourcePosition { newest_ms: None, rows: 2 };
        let mut resumed = Csv::open(CsvConfig { path, ..labelled }, known).unwrap();
        let InputBatch::Rows(rows) = resumed.read(9).unwrap() else { panic!("readings") };
        assert_eq!(rows.iter().map(|row| row.features[0]).collect::<Vec<_>>(), [3.0]);
    }
}
