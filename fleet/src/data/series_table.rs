//! CSV files with a time and a measured value in each line.

use std::borrow::Cow;
use std::io::Read;
use std::ops::Range;

use evenhand_node::reading::Reading;
use evenhand_node::source::time::TimeFormat;
use evenhand_node::time_zone::LocalTimeZone;

use super::files::{BYTES_MAX, DataFile};
use super::{DataError, FilePosition, FormatError};

/// Plausible times of a recording: 1970 to 2099.
const TIMES_MS: Range<i64> = 0..4_102_444_800_000;

/// Columns, each by the names it may have.
pub(super) struct SeriesColumns {
    pub(super) owner: Option<&'static str>,
    pub(super) time: &'static [&'static str],
    pub(super) value: &'static [&'static str],
    pub(super) quantity: MeasuredQuantity,
}

/// A quantity and its plausible bounds.
pub(super) struct MeasuredQuantity {
    pub(super) name: &'static str,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// One line.
pub(super) struct SeriesLine {
    pub(super) number: u64,
    pub(super) owner: String,
    pub(super) time_ms: i64,
    /// None where nothing was measured.
    pub(super) value: Option<f64>,
}

impl SeriesLine {
    /// The reading, with the time of its end `after_ms` later than stated.
    pub(super) fn reading(&self, after_ms: i64) -> Option<Reading> {
        Some(Reading { time_ms: self.time_ms.checked_add(after_ms)?, value: self.value? })
    }
}

/// Hands every line of a file to `visit`.
pub(super) fn read(
    source: &DataFile,
    columns: &SeriesColumns,
    mut visit: impl FnMut(SeriesLine) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let mut table = SeriesTable::open(source, columns)?;
    while let Some(number) = table.advance()? {
        let time_ms = table.time_ms(number)?;
        let value = table.value(number, &columns.quantity)?;
        let owner = table.owner(number)?.into_owned();
        visit(SeriesLine { number, owner, time_ms, value })?;
    }
    Ok(())
}

/// Hands the owner of every line of a file to `visit`.
pub(super) fn owners(
    source: &DataFile,
    columns: &SeriesColumns,
    mut visit: impl FnMut(&str),
) -> Result<(), DataError> {
    let mut table = SeriesTable::open(source, columns)?;
    while let Some(number) = table.advance()? {
        visit(&table.owner(number)?);
    }
    Ok(())
}

/// A file, line by line.
struct SeriesTable<'a> {
    source: &'a DataFile,
    lines: csv::Reader<Box<dyn Read>>,
    record: csv::ByteRecord,
    owner_at: Option<usize>,
    time_at: usize,
    value_at: usize,
}

impl<'a> SeriesTable<'a> {
    fn open(source: &'a DataFile, columns: &SeriesColumns) -> Result<Self, DataError> {
        let content: Box<dyn Read> = Box::new(source.open(BYTES_MAX)?);
        let mut lines = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(content);
        let head = lines.byte_headers().map_err(|error| failed(source, 1, &error))?;
        let head: Vec<String> = head.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        let find = |names: &[&str]| {
            let position = head.iter().position(|name| names.contains(&name.trim_start_matches('\u{feff}')));
            position.ok_or_else(|| {
                let wanted = format!("column {}", names.join(" or "));
                let found: String = match head.is_empty() {
                    true => "none".into(),
                    false => head.join(", ").chars().take(200).collect(),
                };
                source.at_line(1, FormatError::Absent { wanted, found })
            })
        };
        let owner_at = columns.owner.map(|name| find(&[name])).transpose()?;
        let (time_at, value_at) = (find(columns.time)?, find(columns.value)?);
        Ok(Self { source, lines, record: csv::ByteRecord::new(), owner_at, time_at, value_at })
    }

    /// Reads the next line; its number, or none at the end.
    fn advance(&mut self) -> Result<Option<u64>, DataError> {
        let line = self.lines.position().line();
        let read = self.lines.read_byte_record(&mut self.record);
        let is_there = read.map_err(|error| failed(self.source, line, &error))?;
        Ok(is_there.then(|| self.record.position().map_or(line, csv::Position::line)))
    }

    fn cell(&self, at: usize) -> Cow<'_, str> {
        String::from_utf8_lossy(self.record.get(at).unwrap_or_default())
    }

    /// The owner of the line; empty where the file has no owners.
    fn owner(&self, number: u64) -> Result<Cow<'_, str>, DataError> {
        match self.owner_at.map(|at| (at, self.cell(at))) {
            None => Ok(Cow::default()),
            Some((at, owner)) if owner.is_empty() => {
                Err(self.source.at_line(number, FormatError::Nobody { column: at + 1 }))
            }
            Some((_, owner)) => Ok(owner),
        }
    }

    fn time_ms(&self, number: u64) -> Result<i64, DataError> {
        let text = self.cell(self.time_at);
        let found = || text.chars().take(40).collect();
        match TimeFormat::Iso.parse(&text, &LocalTimeZone::default()) {
            Some(time_ms) if TIMES_MS.contains(&time_ms) => Ok(time_ms),
            Some(_) => Err(self.source.at_line(number, FormatError::Era { found: found() })),
            None => Err(self.source.at_line(number, FormatError::Time { found: found() })),
        }
    }

    fn value(&self, number: u64, quantity: &MeasuredQuantity) -> Result<Option<f64>, DataError> {
        let text = self.cell(self.value_at);
        if text.is_empty() || text.eq_ignore_ascii_case("null") {
            return Ok(None);
        }
        let (found, column) = (|| text.chars().take(40).collect(), self.value_at + 1);
        let cause = match text.parse::<f64>() {
            Ok(value) if (quantity.low..=quantity.high).contains(&value) => return Ok(Some(value)),
            Ok(value) if value.is_finite() => FormatError::Implausible {
                found: found(),
                column,
                quantity: quantity.name,
                low: quantity.low.to_string(),
                high: quantity.high.to_string(),
            },
            _ => FormatError::Number { found: found(), column },
        };
        Err(self.source.at_line(number, cause))
    }
}

fn failed(source: &DataFile, line: u64, error: &csv::Error) -> DataError {
    match error.kind() {
        csv::ErrorKind::Io(error) => source.failed(FilePosition::Line(line), error),
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
            let line = pos.as_ref().map_or(line, csv::Position::line);
            let cause =
                FormatError::Table { what: "columns", found: *len as usize, wanted: *expected_len as usize };
            source.at_line(line, cause)
        }
        _ => source.at_line(line, FormatError::Csv(error.to_string())),
    }
}
