//! Lines of a CSV file.

use super::{CsvConfig, LabelKind};
use crate::reading::{LabelledRow, Reading, RowTarget};
use crate::source::SourceError;
use crate::source::number::{no_number, number};
use crate::source::time::TimeReader;

/// The meaning of a file's columns, from its first line.
#[derive(Debug)]
pub struct CsvTable {
    settings: CsvConfig,
    times: TimeReader,
    columns: Option<CsvColumns>,
}

#[derive(Debug, Clone)]
enum CsvColumns {
    Series { time: usize, value: usize },
    Labelled { features: Vec<usize>, label: usize },
}

/// Content of a line.
#[derive(Debug, Clone, PartialEq)]
pub enum CsvLine {
    /// A measurement.
    Reading(Reading),
    /// A labelled row.
    Row(LabelledRow),
    /// Names of columns, or nothing.
    Nothing,
    /// Something else, for this reason.
    Malformed(String),
}

impl CsvTable {
    /// A table before its first line.
    pub fn new(settings: CsvConfig) -> Self {
        let times = TimeReader::new(settings.time_format, settings.time_zone.clone().unwrap_or_default());
        Self { settings, times, columns: None }
    }

    /// Discards the columns: the file starts over.
    pub(super) fn restart(&mut self) {
        self.columns = None;
    }

    /// The content of `line`, without its line end; an error if a configured column does not exist.
    pub fn read(&mut self, line: &str) -> Result<CsvLine, SourceError> {
        let line = line.trim_start_matches('\u{feff}');
        if line.is_empty() {
            return Ok(CsvLine::Nothing);
        }
        let fields = split(line, self.settings.delimiter);
        if self.columns.is_none() {
            self.columns = Some(self.find_columns(&fields)?);
            if self.settings.header {
                return Ok(CsvLine::Nothing);
            }
        }
        let content = match &self.columns {
            Some(CsvColumns::Series { time, value }) => {
                reading(&self.settings, &mut self.times, &fields, *time, *value).map(CsvLine::Reading)
            }
            Some(CsvColumns::Labelled { features, label }) => {
                row(&self.settings, &fields, features, *label).map(CsvLine::Row)
            }
            None => return Ok(CsvLine::Nothing),
        };
        Ok(content.unwrap_or_else(CsvLine::Malformed))
    }

    fn find_columns(&self, fields: &[String]) -> Result<CsvColumns, SourceError> {
        let CsvConfig { time_column, value_column, label_column, feature_columns, .. } = &self.settings;
        if label_column.is_empty() {
            let (time, value) = (self.find(time_column, fields)?, self.find(value_column, fields)?);
            return Ok(CsvColumns::Series { time, value });
        }
        let label = self.find(label_column, fields)?;
        let features = if feature_columns.is_empty() {
            (0..fields.len()).filter(|column| *column != label).collect()
        } else {
            feature_columns.iter().map(|column| self.find(column, fields)).collect::<Result<_, _>>()?
        };
        Ok(CsvColumns::Labelled { features, label })
    }

    /// The position of a column that is named, or numbered from 1.
    fn find(&self, column: &str, fields: &[String]) -> Result<usize, SourceError> {
        let by_name = fields.iter().position(|field| self.settings.header && field == column);
        let by_number = || column.parse::<usize>().ok()?.checked_sub(1).filter(|index| *index < fields.len());
        by_name.or_else(by_number).ok_or_else(|| SourceError::Column {
            path: self.settings.path.clone(),
            column: column.to_owned(),
            columns: fields.join(", "),
        })
    }
}

fn reading(
    settings: &CsvConfig,
    times: &mut TimeReader,
    fields: &[String],
    time: usize,
    value: usize,
) -> Result<Reading, String> {
    let (Some(time), Some(value)) = (fields.get(time), fields.get(value)) else {
        return Err(format!(
            "it has {} columns by the delimiter {:?}; check source.delimiter",
            fields.len(),
            settings.delimiter
        ));
    };
    let time_ms = times.read(time).ok_or_else(|| times.no_time(time))?;
    let comma = settings.decimal_comma;
    let value = number(value, comma).ok_or_else(|| no_number(value, Some(comma)))?;
    Ok(Reading { time_ms, value })
}

fn row(
    settings: &CsvConfig,
    fields: &[String],
    features: &[usize],
    label: usize,
) -> Result<LabelledRow, String> {
    let text = |column: usize| {
        fields.get(column).ok_or_else(|| format!("it has {} columns; check source.delimiter", fields.len()))
    };
    let value = |column: usize| {
        let (text, comma) = (text(column)?, settings.decimal_comma);
        number(text, comma).map(|value| value as f32).ok_or_else(|| no_number(text, Some(comma)))
    };
    let features = features.iter().map(|column| value(*column)).collect::<Result<_, _>>()?;
    let target = match settings.label {
        LabelKind::Value => RowTarget::Value(value(label)?),
        LabelKind::Class => {
            let text = text(label)?;
            let named = settings.classes.iter().position(|class| class == text);
            let class =
                if settings.classes.is_empty() { text.parse().ok() } else { named.map(|class| class as u32) };
            let class = class.ok_or_else(|| format!("{text:?} is no class; list it in source.classes"))?;
            RowTarget::Class(class)
        }
    };
    Ok(LabelledRow { features, target })
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
    use crate::source::time::TimeFormat;
    use proptest::prelude::*;

    fn labelled(label: LabelKind, classes: &[&str]) -> CsvConfig {
        CsvConfig {
            label_column: "kind".into(),
            label,
            classes: classes.iter().map(|class| (*class).to_owned()).collect(),
            ..Default::default()
        }
    }

    #[test]
    fn labelled_rows_have_features_and_a_class_or_a_value() {
        let mut table = CsvTable::new(labelled(LabelKind::Class, &[]));
        assert_eq!(table.read("a,kind,b").unwrap(), CsvLine::Nothing);
        let row = LabelledRow { features: vec![1.5, -2.0], target: RowTarget::Class(3) };
        assert_eq!(table.read("1.5,3,-2").unwrap(), CsvLine::Row(row));
        for wrong in ["1.5,x,-2", "1.5,-1,2", ",3,2", "1,2"] {
            assert!(matches!(table.read(wrong), Ok(CsvLine::Malformed(_))), "{wrong}");
        }

        let mut named = CsvTable::new(labelled(LabelKind::Class, &["up", "down"]));
        named.read("kind,a").unwrap();
        assert_eq!(
            named.read("down,1").unwrap(),
            CsvLine::Row(LabelledRow { features: vec![1.0], target: RowTarget::Class(1) })
        );
        assert!(matches!(named.read("1,1"), Ok(CsvLine::Malformed(_))), "not one of the classes");

        let chosen =
            CsvConfig { feature_columns: vec!["b".into(), "1".into()], ..labelled(LabelKind::Value, &[]) };
        let mut table = CsvTable::new(chosen);
        table.read("a,kind,b").unwrap();
        let row = LabelledRow { features: vec![3.0, 1.0], target: RowTarget::Value(0.25) };
        assert_eq!(table.read("1,0.25,3").unwrap(), CsvLine::Row(row));
    }

    #[test]
    fn the_setting_to_change_is_named() {
        let reason = |settings: CsvConfig, line: &str| {
            let settings =
                CsvConfig { header: false, time_column: "1".into(), value_column: "2".into(), ..settings };
            match CsvTable::new(settings).read(line) {
                Ok(CsvLine::Malformed(reason)) => reason,
                other => panic!("{other:?}"),
            }
        };
        let semicolon = CsvConfig { delimiter: ';', ..Default::default() };
        let said = reason(semicolon.clone(), "2024-05-01 12:30;1,5");
        assert!(said.contains("set source.decimal_comma = true"), "{said}");
        let said = reason(semicolon.clone(), "01.05.2024 12:30;1.5");
        assert!(said.contains("set source.time_format = \"day-first\""), "{said}");
        let said = reason(semicolon, "1714566600;1.5");
        assert!(said.contains("set source.time_format = \"unix-s\""), "{said}");
    }

    proptest! {
        #[test]
        fn any_line_is_finite_or_malformed(lines in prop::collection::vec("\\PC{0,40}|[0-9.,\";eE-]{0,12},[0-9.]{0,9}", 0..8), rows: bool) {
            let settings = CsvConfig {
                header: false,
                time_column: "1".into(),
                value_column: "2".into(),
                label_column: if rows { "1".into() } else { String::new() },
                time_format: TimeFormat::UnixS,
                ..Default::default()
            };
            let mut table = CsvTable::new(settings);
            for line in lines {
                match table.read(&line) {
                    Ok(CsvLine::Reading(reading)) => prop_assert!(!rows && reading.value.is_finite()),
                    Ok(CsvLine::Row(_)) => prop_assert!(rows),
                    Ok(CsvLine::Nothing | CsvLine::Malformed(_)) | Err(_) => {}
                }
            }
        }
    }
}
