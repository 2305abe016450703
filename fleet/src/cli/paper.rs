//! `evenhand-fleet paper`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::ValueEnum;
use evenhand_program::exit::Exit;
use serde::Serialize;

use super::FleetError;
use super::compare::TableFormat;
use super::present::{once, present};
use super::trial_args::{TrialArgs, finished};
use crate::data::{AsPublished, Dataset};
use crate::experiment::paper::cost::cost;
use crate::experiment::paper::document::WordTable;
use crate::experiment::paper::report;
use crate::experiment::paper::results::CellResult;
use crate::experiment::paper::selection::{PaperSelection, ShownItem, agreement};
use crate::experiment::paper::{ITEMS, ItemKind, PUBLISHED_JSON, PaperItem, PaperScope, item, published};
use crate::experiment::progress::duration;
use crate::experiment::runner::TrialRecords;
use crate::experiment::variant::Variants;
use crate::names::value_name;
use crate::scenario::Corruption;

/// Examples of use.
pub(super) const HELP: &str = "\
Examples:
  evenhand-fleet paper --list                            tables and figures, with their cost
  evenhand-fleet paper pearson-online-loss --data DIR    one table
  evenhand-fleet paper all --data DIR --trials 2         everything, with two trials each
  evenhand-fleet paper agreement --no-run                how many numbers agree, of what was run
  evenhand-fleet paper published --json                  the published numbers

Every finished trial is a file in --out: Ctrl-C loses only the trials under way, and the same
command goes on. Tables share trials with each other and with `experiment`.
Ours ± standard error, [published], and the difference in standard errors.";

/// Flags of `evenhand-fleet paper`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PaperArgs {
    /// A table or figure by its label in the paper, tables, figures, or all; published, or agreement
    #[arg(value_name = "TABLE|FIGURE|all", required_unless_present = "list")]
    pub target: Option<PaperTarget>,
    /// List the tables and figures
    #[arg(long)]
    pub list: bool,
    /// Only these data sets, with commas [default: all of which the files are there]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "D,…")]
    pub dataset: Vec<Dataset>,
    /// Only these kinds of bad data, with commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "C,…")]
    pub corruption: Vec<Corruption>,
    /// Only these strategies, with commas; ours is called paper
    #[arg(long, value_name = "S,S,…")]
    pub strategy: Option<Variants>,
    /// Do not run the controls, in which all data are equally good
    #[arg(long)]
    pub no_control: bool,
    /// Format of tables
    #[arg(long, value_enum, default_value_t = TableFormat::Text, conflicts_with = "json")]
    pub format: TableFormat,
    /// Write a document of each table and figure that was run into this folder
    #[arg(long, value_name = "DIR")]
    pub documents: Option<PathBuf>,
    /// Flags of every command that runs trials.
    #[command(flatten)]
    pub trials: TrialArgs,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaperTarget {
    All,
    Tables,
    Figures,
    /// The published numbers.
    Published,
    /// Counts of all numbers.
    Agreement,
    Item(&'static PaperItem),
}

impl FromStr for PaperTarget {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Ok(match name {
            "all" => Self::All,
            "tables" => Self::Tables,
            "figures" => Self::Figures,
            "published" => Self::Published,
            "agreement" => Self::Agreement,
            name => Self::Item(item(name).ok_or_else(|| {
                format!("no table or figure is called {name:?}; `evenhand-fleet paper --list` names them")
            })?),
        })
    }
}

impl PaperTarget {
    fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Tables => "tables",
            Self::Figures => "figures",
            Self::Published => "published",
            Self::Agreement => "agreement",
            Self::Item(item) => item.name(),
        }
    }

    fn items(self) -> Vec<&'static PaperItem> {
        let of = |wanted: fn(&PaperItem) -> bool| ITEMS.iter().filter(|item| wanted(item)).collect();
        match self {
            Self::Item(item) => vec![item],
            Self::Tables => of(|item| item.kind != ItemKind::Figure),
            Self::Figures => of(|item| item.kind == ItemKind::Figure),
            Self::All | Self::Published | Self::Agreement => of(|_| true),
        }
    }
}

/// The JSON object.
#[derive(Debug, Serialize)]
struct PaperFigures<'a> {
    target: &'a str,
    trials: u64,
    as_published: String,
    left_out: &'a [String],
    numbers: Vec<NumberFigures<'a>>,
    agreement: &'a [WordTable],
}

/// One number of ours beside the published one.
#[derive(Debug, Serialize)]
struct NumberFigures<'a> {
    table: &'a str,
    row: &'a str,
    corruption: Option<&'a str>,
    dataset: &'a str,
    published: f64,
    published_error: Option<f64>,
    ours: Option<f64>,
    ours_error: Option<f64>,
    trials: usize,
    level_0: Option<f64>,
    rho_staleness: Option<f64>,
    z: Option<f64>,
    verdict: crate::experiment::paper::agreement::Verdict,
}

/// Runs what is missing of the selection and prints it.
pub(super) fn run(args: &PaperArgs) -> Result<Exit, FleetError> {
    let print = |text: &str| io::stdout().lock().write_all(text.as_bytes()).map_err(FleetError::Output);
    let Some(target) = args.target.filter(|_| !args.list) else {
        print(&listed(args))?;
        return Ok(Exit::Ok);
    };
    if target == PaperTarget::Published {
        print(&if args.trials.json { PUBLISHED_JSON.to_owned() } else { published_list() })?;
        return Ok(Exit::Ok);
    }
    let (datasets, left_out) = present(&args.dataset, &args.trials)?;
    for reason in &left_out {
        eprintln!("left out: {reason}");
    }
    let selection = selection(args, target.items(), datasets);
    let setups = selection.setups();
    let suffix = if args.trials.as_published == AsPublished::Code { "-code" } else { "" };
    let path = args.trials.out.join(format!("paper-{}{suffix}.html", target.name()));
    let file = args.trials.report_file(path)?;
    let Some(records) = args.trials.records(&setups)? else { return Ok(Exit::Interrupted) };
    let shown = selection.shown(&records);
    let counts = agreement(&shown);
    let report = finished(file, || report::html(&heading(target), &lead(&records), &shown, &counts))?;
    if let Some(folder) = &args.documents {
        write_documents(folder, args, &shown, &counts, &records)
            .map_err(|cause| FleetError::Report { path: folder.clone(), cause })?;
    }
    let text = if args.trials.json {
        json(target, args, &left_out, &shown, &counts)?
    } else {
        let tables: Vec<&WordTable> = match target {
            PaperTarget::Agreement => counts.iter().collect(),
            PaperTarget::Item(_) => shown.iter().flat_map(|item| &item.tables).collect(),
            _ => shown.iter().flat_map(|item| &item.tables).chain(&counts).collect(),
        };
        match args.format {
            TableFormat::Text => {
                let tables: Vec<String> = tables.iter().map(|table| table.text()).collect();
                tables.join("\n") + &report
            }
            TableFormat::Markdown => document(&command(args, target.name()), &tables, &lead(&records)),
        }
    };
    print(&text)?;
    Ok(records.exit())
}

fn selection(args: &PaperArgs, items: Vec<&'static PaperItem>, datasets: Vec<Dataset>) -> PaperSelection {
    PaperSelection {
        items,
        datasets,
        corruptions: once(&args.corruption),
        variants: args.strategy.clone().map_or(Vec::new(), |strategies| strategies.0),
        scope: PaperScope {
            as_published: args.trials.as_published,
            evaluation_samples: args.trials.evaluation_samples,
            seed: args.trials.seed,
        },
        trials: args.trials.trials,
        controls: !args.no_control,
    }
}

/// All tables and figures with their trials and hours.
fn listed(args: &PaperArgs) -> String {
    let all: Vec<Dataset> = Dataset::value_variants().to_vec();
    let datasets = if args.dataset.is_empty() { all } else { once(&args.dataset) };
    let chosen = selection(args, ITEMS.iter().collect(), datasets);
    let row = |item: &PaperItem| {
        let kind = if item.kind == ItemKind::Figure { "figure" } else { "table" };
        let (trials, seconds) = cost(&chosen.setups_of(item));
        let time = if trials == 0 { "–".to_owned() } else { duration(seconds) };
        let about = match item.unavailable {
            Some(why) => format!("{}; not here: {why}", item.about),
            None => item.about.to_owned(),
        };
        let numbers = if item.cells() == 0 { "–".to_owned() } else { item.cells().to_string() };
        vec![item.name().to_owned(), kind.to_owned(), numbers, trials.to_string(), time, about]
    };
    let (trials, seconds) = cost(&chosen.setups());
    let table = WordTable {
        title: format!(
            "{} tables and figures, {} trials behind each number",
            ITEMS.len(),
            args.trials.trials
        ),
        heads: ["name", "kind", "numbers", "trials", "on one core", "about"].map(str::to_owned).to_vec(),
        rows: ITEMS.iter().map(row).collect(),
        notes: vec![format!(
            "All of them share trials: {trials} in all, about {} on one core, controls included.",
            duration(seconds)
        )],
    };
    table.text()
}

fn published_list() -> String {
    let row = |table: &crate::experiment::paper::PublishedTable| {
        let name = item(&table.label).map_or(table.label.clone(), |item| item.name().to_owned());
        vec![name, published().of(&table.label).count().to_string(), table.caption.clone()]
    };
    let table = WordTable {
        title: "The published tables; --json prints every number".into(),
        heads: ["name", "numbers", "caption"].map(str::to_owned).to_vec(),
        rows: published().tables.iter().map(row).collect(),
        notes: Vec::new(),
    };
    table.text()
}

fn json(
    target: PaperTarget,
    args: &PaperArgs,
    left_out: &[String],
    shown: &[ShownItem],
    counts: &[WordTable],
) -> Result<String, FleetError> {
    let number = |result: &CellResult| NumberFigures {
        table: &result.cell.table,
        row: &result.cell.row,
        corruption: result.cell.corruption.as_deref(),
        dataset: &result.cell.dataset,
        published: result.cell.value,
        published_error: result.cell.standard_error(),
        ours: result.ours.as_ref().map(|ours| ours.mean),
        ours_error: result.ours.as_ref().and_then(|ours| ours.standard_error),
        trials: result.ours.as_ref().map_or(0, |ours| ours.values.len()),
        level_0: result.level_0.as_ref().map(|control| control.mean),
        rho_staleness: result.staleness.as_ref().map(|rho| rho.mean),
        z: result.z,
        verdict: result.verdict,
    };
    let figures = PaperFigures {
        target: target.name(),
        trials: args.trials.trials,
        as_published: value_name(&args.trials.as_published),
        left_out,
        numbers: shown.iter().flat_map(|item| &item.results).map(number).collect(),
        agreement: counts,
    };
    Ok(serde_json::to_string(&figures).map_err(|error| FleetError::Output(error.into()))? + "\n")
}

fn heading(target: PaperTarget) -> String {
    match target {
        PaperTarget::Item(item) => format!("The paper: {}", item.about),
        _ => "The paper’s tables and figures".into(),
    }
}

fn lead(records: &TrialRecords) -> String {
    let seconds: f64 = records.iter().map(|record| record.seconds).sum();
    format!(
        "{} of {} trials, {} of computing. Ours ± standard error [published], and the difference in standard errors.",
        records.done(),
        records.wanted,
        duration(seconds)
    )
}

fn document(command: &str, tables: &[&WordTable], lead: &str) -> String {
    let mut text = format!("Made by `{command}`. {lead}\n");
    for table in tables {
        text.push('\n');
        text.push_str(&table.markdown());
    }
    text
}

/// One file an item that was run, and one with the counts.
fn write_documents(
    folder: &Path,
    args: &PaperArgs,
    shown: &[ShownItem],
    counts: &[WordTable],
    records: &TrialRecords,
) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let suffix = if args.trials.as_published == AsPublished::Code { "-code" } else { "" };
    let write = |name: &str, title: &str, tables: &[&WordTable]| {
        let body = document(&command(args, name), tables, &lead(records));
        fs::write(folder.join(format!("{name}{suffix}.md")), format!("# {title}\n\n{body}"))
    };
    for item in shown.iter().filter(|item| item.is_run()) {
        write(item.item.name(), item.item.about, &item.tables.iter().collect::<Vec<_>>())?;
    }
    write("agreement", "Agreement with the published numbers", &counts.iter().collect::<Vec<_>>())
}

/// The command that makes the same again; folders belong to the machine, not to the experiment.
fn command(args: &PaperArgs, name: &str) -> String {
    let mut command = format!("evenhand-fleet paper {name} --data DIR --trials {}", args.trials.trials);
    let mut add = |flag: &str, values: Vec<String>| {
        if !values.is_empty() {
            command.push_str(&format!(" --{flag} {}", values.join(",")));
        }
    };
    add("dataset", args.dataset.iter().map(value_name).collect());
    add("corruption", args.corruption.iter().map(value_name).collect());
    let strategies = args.strategy.iter().flat_map(|strategies| &strategies.0);
    add("strategy", strategies.map(|one| one.name()).collect());
    if args.trials.evaluation_samples > 0 {
        add("evaluation-samples", vec![args.trials.evaluation_samples.to_string()]);
    }
    add("as-published", vec![value_name(&args.trials.as_published)]);
    command
}
