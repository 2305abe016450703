//! An experiment: variants side by side on one data set and corruption.

use super::labels::{corruption_label, dataset_label, number_label};
use super::measure::Measure;
use super::runner::TrialRecords;
use super::setup::Setup;
use super::table::{CellQuery, ResultTable, TablePlan, seeds};
use crate::data::Dataset;
use crate::names::value_name;

/// The table of an experiment: one row a strategy.
pub fn table_plan(setups: &[Setup]) -> TablePlan {
    plan(setups, Measure::SHOWN.map(Column::Own).to_vec())
}

/// The filled table of an experiment: beside every ρ that of the level-0 control, where it was run, and the correlation
/// with worth, where it is known.
pub fn filled_table(setups: &[Setup], trials: u64, records: &TrialRecords) -> ResultTable {
    let own = || setups.iter().flat_map(|setup| seeds(setup, trials));
    let controlled = own().filter_map(|setup| setup.control()).any(|control| records.get(&control).is_some());
    let is_known = own().filter_map(|setup| records.get(&setup)).any(|record| record.worths.is_some());
    let mut columns = Vec::new();
    if is_known {
        columns.push(Column::Own(Measure::RhoWorth));
    }
    for measure in Measure::SHOWN {
        columns.push(Column::Own(measure));
        if controlled && measure.is_correlation() {
            columns.push(Column::Control(measure));
        }
    }
    plan(setups, columns).fill(records, trials)
}

/// A column of the table: a measure of the trials, or of their control.
#[derive(Debug, Clone, Copy)]
enum Column {
    Own(Measure),
    Control(Measure),
}

fn plan(setups: &[Setup], columns: Vec<Column>) -> TablePlan {
    let dataset = setups.first().map(|setup| setup.dataset);
    let heads = columns.iter().map(|column| match column {
        Column::Own(measure) => dataset.map_or(String::new(), |set| measure.head(set)),
        Column::Control(_) => "level 0".into(),
    });
    let ask = |setup: &Setup| {
        let query = |column: &Column| match *column {
            Column::Own(measure) => CellQuery { setup: setup.clone(), measure },
            Column::Control(measure) => {
                CellQuery { setup: setup.control().unwrap_or_else(|| setup.clone()), measure }
            }
        };
        columns.iter().map(query).collect()
    };
    TablePlan {
        title: setups.first().map_or(String::new(), title),
        heads: std::iter::once("strategy".to_owned()).chain(heads).collect(),
        rows: setups.iter().map(|setup| (row_name(setup, setups), ask(setup))).collect(),
        trade_off: None,
    }
}

/// The name of a row: the strategy, and its utility where it is there with several.
fn row_name(setup: &Setup, setups: &[Setup]) -> String {
    let label = setup.variant.label();
    match has_several(setup, setups) {
        true => format!("{label}, {}", setup.utility),
        false => label.to_owned(),
    }
}

/// True if the strategy is there with several utilities.
fn has_several(setup: &Setup, setups: &[Setup]) -> bool {
    setups.iter().any(|other| other.variant == setup.variant && other.utility != setup.utility)
}

/// The title of an experiment: one line.
pub fn title(setup: &Setup) -> String {
    let own: Vec<String> = setup
        .differences()
        .into_iter()
        .map(|(name, value)| format!("{name} {}", number_label(&value)))
        .collect();
    let own = if own.is_empty() { String::new() } else { format!(" ({})", own.join(", ")) };
    format!(
        "{}, {}, as in the {}{own}",
        dataset_label(setup.dataset),
        corruption_label(setup.corruption),
        value_name(&setup.as_published)
    )
}

/// The command that repeats an experiment; folders belong to the machine, not to the experiment.
pub fn repeat_command(setups: &[Setup], trials: u64) -> String {
    let Some(first) = setups.first() else { return String::new() };
    let mut names: Vec<String> = setups.iter().map(|setup| setup.variant.name()).collect();
    names.dedup();
    let mut command = format!(
        "evenhand-fleet experiment --dataset {} --corruption {} --as-published {} --strategy {} --trials {trials} --seed {}",
        value_name(&first.dataset),
        value_name(&first.corruption),
        value_name(&first.as_published),
        names.join(","),
        first.seed
    );
    if setups.iter().any(|setup| has_several(setup, setups)) {
        command.push_str(" --every-utility");
    }
    for (flag, value) in first.differences() {
        command.push_str(&if flag == "shuffled" {
            " --shuffled".into()
        } else {
            format!(" --{flag} {value}")
        });
    }
    if first.dataset != Dataset::Synthetic {
        command.push_str(" --data DIR");
    }
    command
}
