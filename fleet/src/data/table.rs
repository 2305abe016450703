//! Csv files with a time and a measured value in each line.

use std::borrow::Cow;
use std::io::Read;
use std::ops::Range;

use evenhand_node::reading::Reading;
use evenhand_node::source::time::TimeFormat;

use super::files::{BYTES_MAX, Source};
use super::{DataError, Flaw, Place};

/// Nobody recorded these data earlier, or will later: 1970 to 2099.
const TIMES_MS: Range<i64> = 0..4_102_444_800_000;

/// Which columns, each by the names it may have.
pub(super) struct Columns {
    pub(super) owner: Option<&'static str>,
    pub(super) time: &'static [&'static str],
    pub(super) value: &'static [&'static str],
    pub(super) quantity: Quantity,
}

/// What a value is, and between which bounds it can be that.
pub(super) struct Quantity {
    pub(super) name: &'static str,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// One line.
pub(super) struct Line {
    pub(super) number: u64,
    pub(super) owner: String,
    pub(super) time_ms: i64,
    /// None where nothing was measured.
    pub(super) value: Option<f64>,
}

impl Line {
    /// What was measured, with the time of its end `after_ms` later than stated.
    pub(super) fn reading(&self, after_ms: i64) -> Option<Reading> {
        Some(Reading { time_ms: self.time_ms.checked_add(after_ms)?, value: self.value? })
    }
}

/// Hands every line of a file to `visit`.
pub(super) fn read(
    source: &Source,
    columns: &Columns,
    mut visit: impl FnMut(Line) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let mut table = Table::open(source, columns)?;
    while let Some(number) = table.advance()? {
        let time_ms = table.time_ms(number)?;
        let value = table.value(number, &columns.quantity)?;
        let owner = table.owner(number)?.into_owned();
        visit(Line { number, owner, time_ms, value })?;
    }
    Ok(())
}

/// Hands the owner of every line of a file to `visit`.
pub(super) fn owners(
    source: &Source,
    columns: &Columns,
    mut visit: impl FnMut(&str),
) -> Result<(), DataError> {
    let mut table = Table::open(source, columns)?;
    while let Some(number) = table.advance()? {
        visit(&table.owner(number)?);
    }
    Ok(())
}

/// A file, line by line.
struct Table<'a> {
    source: &'a Source,
    lines: csv::Reader<Box<dyn Read>>,
    record: csv::ByteRecord,
    owner_at: Option<usize>,
    time_at: usize,
    value_at: usize,
}

impl<'a> Table<'a> {
    fn open(source: &'a Source, columns: &Columns) -> Result<Self, DataError> {
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
                source.at_line(1, Flaw::Absent { wanted, found })
            })
        };
        let owner_at = columns.owner.map(|name| find(&[name])).transpose()?;
        let (time_at, value_at) = (find(columns.time)?, find(columns.value)?);
        Ok(Self { source, lines, record: csv::ByteRecord::new(), owner_at, time_at, value_at })
    }

    /// Moves on; the number of the line, or none at the end.
    fn advance(&mut self) -> Result<Option<u64>, DataError> {
        let line = self.lines.position().line();
        let read = self.lines.read_byte_record(&mut self.record);
        let is_there = read.map_err(|error| failed(self.source, line, &error))?;
        Ok(is_there.then(|| self.record.position().map_or(line, csv::Position::line)))
    }

    fn cell(&self, at: usize) -> Cow<'_, str> {
        String::from_utf8_lossy(self.record.get(at).unwrap_or_default())
    }

    /// Whose line this is; empty where nobody owns the file.
    fn owner(&self, number: u64) -> Result<Cow<'_, str>, DataError> {
        match self.owner_at.map(|at| (at, self.cell(at))) {
            None => Ok(Cow::default()),
            Some((at, owner)) if owner.is_empty() => {
                Err(self.source.at_line(number, Flaw::Nobody { column: at + 1 }))
            }
            Some((_, owner)) => Ok(owner),
        }
    }

    fn time_ms(&self, number: u64) -> Result<i64, DataError> {
        let text = self.cell(self.time_at);
        let found = || text.chars().take(40).collect();
        match TimeFormat::Iso.parse(&text, 0) {
            Some(time_ms) if TIMES_MS.contains(&time_ms) => Ok(time_ms),
            Some(_) => Err(self.source.at_line(number, Flaw::Era { found: found() })),
            None => Err(self.source.at_line(number, Flaw::Time { found: found() })),
        }
    }

    fn value(&self, number: u64, quantity: &Quantity) -> Result<Option<f64>, DataError> {
        let text = self.cell(self.value_at);
        if text.is_empty() || text.eq_ignore_ascii_case("null") {
            return Ok(None);
        }
        let (found, column) = (|| text.chars().take(40).collect(), self.value_at + 1);
        let flaw = match text.parse::<f64>() {
            Ok(value) if (quantity.low..=quantity.high).contains(&value) => return Ok(Some(value)),
            Ok(value) if value.is_finite() => Flaw::Implausible {
                found: found(),
                column,
                quantity: quantity.name,
                low: quantity.low.to_string(),
                high: quantity.high.to_string(),
            },
            _ => Flaw::Number { found: found(), column },
        };
        Err(self.source.at_line(number, flaw))
    }
}

fn failed(source: &Source, line: u64, error: &csv::Error) -> DataError {
    match error.kind() {
        csv::ErrorKind::Io(error) => source.failed(Place::Line(line), error),
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
            let line = pos.as_ref().map_or(line, csv::Position::line);
            let flaw = Flaw::Table { what: "columns", found: *len as usize, wanted: *expected_len as usize };
            source.at_line(line, flaw)
        }
        _ => source.at_line(line, Flaw::Csv(error.to_string())),
    }
}
