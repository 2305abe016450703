//! `evenhand-fleet compare`.

use std::io::{self, Write};

use clap::ValueEnum;
use evenhand_program::exit::Exit;
use serde::Serialize;

use super::FleetError;
use super::present::{once, present};
use super::trial_args::{TrialArgs, finished};
use crate::data::{AsPublished, Dataset};
use crate::experiment::compare::{CORRUPTIONS, ComparisonTable, TableScope, plans};
use crate::experiment::page;
use crate::experiment::progress::duration;
use crate::experiment::runner::TrialRecords;
use crate::experiment::setup::Setup;
use crate::experiment::table::{ResultTable, TablePlan, seeds};
use crate::experiment::variant::{Variant, Variants};
use crate::names::value_name;
use crate::scenario::Corruption;

/// Examples of use.
pub(super) const HELP: &str = "\
Examples:
  evenhand-fleet compare fairness --data DIR               all data sets that are in DIR
  evenhand-fleet compare sharpness --data DIR --dataset mnist   fairness against equality, MNIST
  evenhand-fleet compare all --data DIR --format markdown  everything, for a document

Tables share trials with each other and with `evenhand-fleet experiment` through --out: nothing
is run twice.
The paper's own tables are those of `evenhand-fleet paper`.";

/// Flags of `evenhand-fleet compare`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CompareArgs {
    /// Table
    #[arg(value_enum)]
    pub table: ComparisonTable,
    /// Only these data sets, with commas [default: all of which the files are there]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "D,…")]
    pub dataset: Vec<Dataset>,
    /// Only these kinds of bad data, with commas, in the tables that compare them
    #[arg(long, value_enum, value_delimiter = ',', value_name = "C,…")]
    pub corruption: Vec<Corruption>,
    /// Only these strategies, with commas, in the tables that compare them; all is what it is for `experiment`. The table
    /// sharpness is always about paper
    #[arg(long, default_value = "all", value_name = "S|all|S,S,…")]
    pub strategy: Variants,
    /// Format of tables
    #[arg(long, value_enum, default_value_t = TableFormat::Text, conflicts_with = "json")]
    pub format: TableFormat,
    /// Flags of every command that runs trials.
    #[command(flatten)]
    pub trials: TrialArgs,
}

/// The format of printed tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    /// For terminals
    Text,
    /// For documents
    Markdown,
}

/// The JSON object.
#[derive(Debug, Serialize)]
struct CompareFigures<'a> {
    table: String,
    trials: u64,
    seed: u64,
    as_published: String,
    /// Data sets that were left out, and why.
    left_out: &'a [String],
    tables: &'a [ResultTable],
}

/// Runs what is missing of a table and prints it.
pub(super) fn run(args: &CompareArgs) -> Result<Exit, FleetError> {
    let (datasets, mut left_out) = present(&args.dataset, &args.trials)?;
    let only = once(&args.corruption);
    let scope = TableScope {
        variants: args.strategy.0.clone(),
        corruptions: if only.is_empty() { CORRUPTIONS.to_vec() } else { only },
        as_published: args.trials.as_published,
        evaluation_samples: args.trials.evaluation_samples,
        seed: args.trials.seed,
    };
    for (dataset, name) in
        datasets.iter().flat_map(|&one| args.table.each().into_iter().map(move |name| (one, name)))
    {
        left_out.extend(scope.left_out(name, dataset));
    }
    let left_out = once(&left_out);
    for reason in &left_out {
        eprintln!("left out: {reason}");
    }
    let plans: Vec<TablePlan> =
        datasets.iter().flat_map(|&dataset| plans(args.table, dataset, &scope)).collect();
    if plans.is_empty() {
        return Err(FleetError::NothingLeft { table: value_name(&args.table) });
    }
    let trials = args.trials.trials;
    let setups: Vec<Setup> = plans.iter().flat_map(|plan| plan.setups(trials)).collect();
    let name = value_name(&args.table);
    let suffix = if args.trials.as_published == AsPublished::Code { "-code" } else { "" };
    let file = args.trials.report_file(args.trials.out.join(format!("compare-{name}{suffix}.html")))?;
    let Some(records) = args.trials.records(&setups)? else { return Ok(Exit::Interrupted) };
    let mut tables: Vec<ResultTable> = plans.iter().map(|plan| plan.fill(&records, trials)).collect();
    if args.trials.no_run {
        tables = tables.into_iter().map(ResultTable::without_empty_rows).collect();
        tables.retain(|table| !table.rows.is_empty());
        if tables.is_empty() {
            eprintln!(
                "no trial of this is stored in {}; without --no-run they are run",
                args.trials.out.display()
            );
        }
    }
    let groups = groups(&plans, &records, trials);
    let report = finished(file, || page::tables(&heading(&name), &tables, &groups, trials, &records))?;
    let text = if args.trials.json {
        let as_published = value_name(&args.trials.as_published);
        let (table, seed) = (name, args.trials.seed);
        let figures =
            CompareFigures { table, trials, seed, as_published, left_out: &left_out, tables: &tables };
        serde_json::to_string(&figures).map_err(|error| FleetError::Output(error.into()))? + "\n"
    } else {
        match args.format {
            TableFormat::Text => {
                let tables: Vec<String> = tables.iter().map(ResultTable::text).collect();
                tables.join("\n") + &report
            }
            TableFormat::Markdown => markdown(args, &tables, &left_out, &records),
        }
    };
    io::stdout().lock().write_all(text.as_bytes()).map_err(FleetError::Output)?;
    Ok(records.exit())
}

/// One group an experiment that compares several strategies with the published settings, for plots.
fn groups(plans: &[TablePlan], records: &TrialRecords, trials: u64) -> Vec<Vec<Setup>> {
    let mut groups: Vec<Vec<Setup>> = Vec::new();
    let queries = plans.iter().flat_map(|plan| &plan.rows).flat_map(|(_, queries)| queries);
    let seen = |setup: &&Setup| seeds(setup, trials).any(|setup| records.get(&setup).is_some());
    let published = |setup: &&Setup| setup.is_published();
    for setup in queries.map(|query| &query.setup).filter(published).filter(seen) {
        let kin = |other: &Setup| (other.dataset, other.corruption) == (setup.dataset, setup.corruption);
        match groups.iter_mut().find(|group| kin(&group[0])) {
            Some(group) if group.contains(setup) => {}
            Some(group) => group.push(setup.clone()),
            None => groups.push(vec![setup.clone()]),
        }
    }
    groups.iter_mut().for_each(|group| group.sort_by_key(|setup| setup.variant));
    groups.retain(|group| group.len() > 1);
    groups
}

fn heading(name: &str) -> String {
    if name == "all" { "Comparisons".into() } else { format!("Comparison: {name}") }
}

fn markdown(
    args: &CompareArgs,
    tables: &[ResultTable],
    left_out: &[String],
    records: &TrialRecords,
) -> String {
    let mut text = format!(
        "Made by `{}`: {} trials, {} of computing, {} trials at a time.\n",
        command(args),
        records.done(),
        duration(records.iter().map(|record| record.seconds).sum()),
        args.trials.workers()
    );
    for reason in left_out {
        text.push_str(&format!("\nLeft out: {reason}.\n"));
    }
    for table in tables {
        text.push('\n');
        text.push_str(&table.markdown());
    }
    text
}

/// The command that makes the same again; folders belong to the machine, not to the experiment.
fn command(args: &CompareArgs) -> String {
    let mut command = format!("evenhand-fleet compare {}", value_name(&args.table));
    if !args.dataset.is_empty() {
        let names: Vec<String> = args.dataset.iter().map(value_name).collect();
        command.push_str(&format!(" --dataset {}", names.join(",")));
    }
    if !args.corruption.is_empty() {
        let names: Vec<String> = args.corruption.iter().map(value_name).collect();
        command.push_str(&format!(" --corruption {}", names.join(",")));
    }
    if args.strategy.0 != Variant::all() {
        let names: Vec<String> = args.strategy.0.iter().map(|one| one.name()).collect();
        command.push_str(&format!(" --strategy {}", names.join(",")));
    }
    let trials = &args.trials;
    if trials.evaluation_samples > 0 {
        command.push_str(&format!(" --evaluation-samples {}", trials.evaluation_samples));
    }
    let as_published = value_name(&trials.as_published);
    command.push_str(&format!(
        " --data DIR --trials {} --seed {} --as-published {as_published} --format markdown",
        trials.trials, trials.seed
    ));
    command
}
