//! An experiment: variants side by side on one data set and corruption.

use super::labels::{corruption_label, dataset_label, number_label};
use super::measure::Measure;
use super::setup::Setup;
use super::table::{CellQuery, TablePlan};
use crate::data::Dataset;
use crate::names::value_name;

/// The table of an experiment: one row a strategy.
pub fn table_plan(setups: &[Setup]) -> TablePlan {
    let dataset = setups.first().map(|setup| setup.dataset);
    let heads = Measure::SHOWN.iter().map(|measure| dataset.map_or(String::new(), |set| measure.head(set)));
    let ask =
        |setup: &Setup| Measure::SHOWN.map(|measure| CellQuery { setup: setup.clone(), measure }).to_vec();
    TablePlan {
        title: setups.first().map_or(String::new(), title),
        heads: std::iter::once("strategy".to_owned()).chain(heads).collect(),
        rows: setups.iter().map(|setup| (setup.variant.label().to_owned(), ask(setup))).collect(),
        trade_off: None,
    }
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
    let names: Vec<String> = setups.iter().map(|setup| setup.variant.name()).collect();
    let mut command = format!(
        "evenhand-fleet experiment --dataset {} --corruption {} --as-published {} --strategy {} --trials {trials} --seed {}",
        value_name(&first.dataset),
        value_name(&first.corruption),
        value_name(&first.as_published),
        names.join(","),
        first.seed
    );
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
