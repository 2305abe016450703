//! `evenhand-fleet paper`, from its flags to its exit code.

use std::io::{self, Write};

use clap::ValueEnum;
use evenhand_protocol::exit::Exit;
use serde::Serialize;

use super::args::{Format, PaperArgs};
use super::tables::{CORRUPTIONS, Scope, plans};
use crate::FleetError;
use crate::corruption::Corruption;
use crate::data::{self, DataError, Dataset, Pool, Request};
use crate::experiment::args::LabArgs;
use crate::experiment::command::finished;
use crate::experiment::names::value_name;
use crate::experiment::page;
use crate::experiment::progress::duration;
use crate::experiment::runner::Records;
use crate::experiment::setup::{AsPublished, Contender, Setup};
use crate::experiment::table::{Plan, Table, seeds};

/// The JSON object.
#[derive(Debug, Serialize)]
struct PaperFigures<'a> {
    table: String,
    trials: u64,
    seed: u64,
    as_published: String,
    /// Data sets that were left out, and why.
    left_out: &'a [String],
    tables: &'a [Table],
}

/// Runs what is missing of a table and prints it.
pub fn run(args: &PaperArgs) -> Result<Exit, FleetError> {
    let (datasets, mut left_out) = present(args)?;
    let only = once(&args.corruption);
    let scope = Scope {
        contenders: args.strategy.0.clone(),
        corruptions: if only.is_empty() { CORRUPTIONS.to_vec() } else { only },
        as_published: args.lab.as_published,
        questions: args.lab.questions,
        seed: args.lab.seed,
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
    let plans: Vec<Plan> = datasets.iter().flat_map(|&dataset| plans(args.table, dataset, &scope)).collect();
    if plans.is_empty() {
        return Err(FleetError::NothingLeft { table: value_name(&args.table) });
    }
    let trials = args.lab.trials;
    let setups: Vec<Setup> = plans.iter().flat_map(|plan| plan.setups(trials)).collect();
    let name = value_name(&args.table);
    let whom = if args.lab.as_published == AsPublished::Code { "-code" } else { "" };
    let pending = args.lab.pending_report(args.lab.out.join(format!("paper-{name}{whom}.html")))?;
    let Some(records) = args.lab.records(&setups)? else { return Ok(Exit::Interrupted) };
    let mut tables: Vec<Table> = plans.iter().map(|plan| plan.answer(&records, trials)).collect();
    if args.lab.no_run {
        tables = tables.into_iter().map(Table::without_empty_rows).collect();
        tables.retain(|table| !table.rows.is_empty());
        if tables.is_empty() {
            eprintln!(
                "no trial of this is kept in {}; without --no-run they are run",
                args.lab.out.display()
            );
        }
    }
    let groups = groups(&plans, &records, trials);
    let report = finished(pending, || page::paper(&heading(&name), &tables, &groups, trials, &records))?;
    let text = if args.lab.json {
        let as_published = value_name(&args.lab.as_published);
        let (table, seed) = (name, args.lab.seed);
        let figures =
            PaperFigures { table, trials, seed, as_published, left_out: &left_out, tables: &tables };
        serde_json::to_string(&figures).map_err(|error| FleetError::Output(error.into()))? + "\n"
    } else {
        match args.format {
            Format::Text => {
                let tables: Vec<String> = tables.iter().map(Table::text).collect();
                tables.join("\n") + &report
            }
            Format::Markdown => markdown(args, &tables, &left_out, &records),
        }
    };
    io::stdout().lock().write_all(text.as_bytes()).map_err(FleetError::Output)?;
    Ok(records.exit())
}

/// The data sets whose files are there, and a sentence for each other one. What is asked for by name must be there.
fn present(args: &PaperArgs) -> Result<(Vec<Dataset>, Vec<String>), FleetError> {
    if !args.dataset.is_empty() {
        return Ok((once(&args.dataset), Vec::new()));
    }
    if args.lab.no_run {
        return Ok((Dataset::value_variants().to_vec(), Vec::new()));
    }
    let folder = data::folder(args.lab.data.clone());
    let (mut there, mut left_out) = (Vec::new(), Vec::new());
    for &dataset in Dataset::value_variants().iter().filter(|&&one| one != Dataset::Synthetic) {
        let LabArgs { as_published, seed, .. } = args.lab;
        let wanted =
            Setup::published(dataset, Corruption::FeatureNoise, Contender::Evenhand, as_published, seed);
        let least = Request { as_published, seed, samples_max: 1, owners_max: wanted.nodes };
        match data::load(dataset, folder.as_deref(), &least) {
            Ok(Pool { owners: Some(owners), .. }) if owners.len() < wanted.nodes => {
                let (found, nodes) = (owners.len(), wanted.nodes);
                left_out.push(format!(
                    "{}, since only {found} of {nodes} households have enough readings",
                    value_name(&dataset)
                ));
            }
            Ok(_) => there.push(dataset),
            Err(error @ (DataError::NoFolder { .. } | DataError::Missing { .. })) => {
                left_out.push(error.to_string())
            }
            Err(error) => return Err(error.into()),
        }
    }
    if there.is_empty() {
        left_out.push("no data set is there, so made-up data are used instead".into());
        there.push(Dataset::Synthetic);
    }
    Ok((there, left_out))
}

/// One group an experiment that compares several strategies with the published settings, for plots.
fn groups(plans: &[Plan], records: &Records, trials: u64) -> Vec<Vec<Setup>> {
    let mut groups: Vec<Vec<Setup>> = Vec::new();
    let questions = plans.iter().flat_map(|plan| &plan.rows).flat_map(|(_, questions)| questions);
    let seen = |setup: &&Setup| seeds(setup, trials).any(|setup| records.get(&setup).is_some());
    let published = |setup: &&Setup| setup.is_published();
    for setup in questions.map(|question| &question.setup).filter(published).filter(seen) {
        let kin = |other: &Setup| (other.dataset, other.corruption) == (setup.dataset, setup.corruption);
        match groups.iter_mut().find(|group| kin(&group[0])) {
            Some(group) if group.contains(setup) => {}
            Some(group) => group.push(setup.clone()),
            None => groups.push(vec![setup.clone()]),
        }
    }
    groups.iter_mut().for_each(|group| group.sort_by_key(|setup| setup.contender));
    groups.retain(|group| group.len() > 1);
    groups
}

/// Each one once, in the order given.
fn once<T: Clone + PartialEq>(given: &[T]) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    for one in given {
        if !kept.contains(one) {
            kept.push(one.clone());
        }
    }
    kept
}

fn heading(name: &str) -> String {
    if name == "all" { "The paper’s tables".into() } else { format!("The paper’s tables: {name}") }
}

fn markdown(args: &PaperArgs, tables: &[Table], left_out: &[String], records: &Records) -> String {
    let mut text = format!(
        "Made by `{}`: {} trials, {} of computing, {} trials at a time.\n",
        command(args),
        records.done(),
        duration(records.iter().map(|record| record.seconds).sum()),
        args.lab.workers()
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
fn command(args: &PaperArgs) -> String {
    let mut command = format!("evenhand-fleet paper {}", value_name(&args.table));
    if !args.dataset.is_empty() {
        let names: Vec<String> = args.dataset.iter().map(value_name).collect();
        command.push_str(&format!(" --dataset {}", names.join(",")));
    }
    if !args.corruption.is_empty() {
        let names: Vec<String> = args.corruption.iter().map(value_name).collect();
        command.push_str(&format!(" --corruption {}", names.join(",")));
    }
    if args.strategy.0 != Contender::all() {
        let names: Vec<String> = args.strategy.0.iter().map(|one| one.name()).collect();
        command.push_str(&format!(" --strategy {}", names.join(",")));
    }
    let lab = &args.lab;
    if lab.questions > 0 {
        command.push_str(&format!(" --questions {}", lab.questions));
    }
    let as_published = value_name(&lab.as_published);
    command.push_str(&format!(
        " --data DIR --trials {} --seed {} --as-published {as_published} --format markdown",
        lab.trials, lab.seed
    ));
    command
}
