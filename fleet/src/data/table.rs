//! Csv files with a time and a measured value in each line.

use evenhand_node::reading::Reading;
use evenhand_node::source::time::TimeFormat;

use super::files::{BYTES_MAX, Source};
use super::{DataError, Flaw, Place};

/// Which columns, each by the names it may have.
pub(super) struct Columns {
    pub(super) owner: Option<&'static str>,
    pub(super) time: &'static [&'static str],
    pub(super) value: &'static [&'static str],
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
    let mut lines = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(source.open(BYTES_MAX)?);
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

    let mut record = csv::ByteRecord::new();
    loop {
        let line = lines.position().line();
        if !lines.read_byte_record(&mut record).map_err(|error| failed(source, line, &error))? {
            return Ok(());
        }
        let number = record.position().map_or(line, csv::Position::line);
        let cell = |at: usize| String::from_utf8_lossy(record.get(at).unwrap_or_default());
        let time = cell(time_at);
        let time_ms = TimeFormat::Iso
            .parse(&time, 0)
            .ok_or_else(|| source.at_line(number, Flaw::Time { found: time.chars().take(40).collect() }))?;
        let value = match &*cell(value_at) {
            "" | "Null" => None,
            text => match text.parse() {
                Ok(value) if f64::is_finite(value) => Some(value),
                _ => {
                    let found = text.chars().take(40).collect();
                    return Err(source.at_line(number, Flaw::Number { found, column: value_at + 1 }));
                }
            },
        };
        let owner = owner_at.map(|at| cell(at).into_owned()).unwrap_or_default();
        visit(Line { number, owner, time_ms, value })?;
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
