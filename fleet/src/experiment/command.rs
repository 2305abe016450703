//! `evenhand-fleet experiment`, from its flags to its exit code.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use evenhand_protocol::exit::Exit;

use super::args::{ExperimentArgs, LabArgs};
use super::measure::Measure;
use super::names::{corruption_label, dataset_label, number_label, value_name};
use super::page;
use super::progress::Progress;
use super::record::Seen;
use super::runner::{Failure, Laboratory, LoadPool, Records, RunTrial};
use super::setup::Setup;
use super::summary::ExperimentFigures;
use super::table::{Plan, Question, seeds};
use super::trial;
use crate::data::{self, Dataset, Request};
use crate::demo::runtime;
use crate::pending::PendingReport;
use crate::progress::Style;
use crate::stream::Stream;
use crate::transport::Interrupt;
use crate::{FleetError, signal};

/// Runs what is missing of an experiment and prints what it found.
pub fn run(args: &ExperimentArgs) -> Result<Exit, FleetError> {
    let setups = args.setups()?;
    let wanted: Vec<Setup> = setups.iter().flat_map(|setup| seeds(setup, args.lab.trials)).collect();
    let pending = args.lab.pending_report(args.report_path(&setups))?;
    let Some(records) = args.lab.records(&wanted)? else { return Ok(Exit::Interrupted) };
    let report = finished(pending, || page::experiment(&setups, args.lab.trials, &records))?;
    let text = if args.lab.json {
        let figures = ExperimentFigures::of(&setups, args.lab.trials, &records);
        serde_json::to_string(&figures).map_err(|error| FleetError::Output(error.into()))? + "\n"
    } else {
        plan(&setups).answer(&records, args.lab.trials).text() + &report
    };
    io::stdout().lock().write_all(text.as_bytes()).map_err(FleetError::Output)?;
    Ok(records.exit())
}

/// The table of an experiment: one row a strategy.
pub fn plan(setups: &[Setup]) -> Plan {
    let dataset = setups.first().map(|setup| setup.dataset);
    let heads = Measure::SHOWN.iter().map(|measure| dataset.map_or(String::new(), |set| measure.head(set)));
    let ask =
        |setup: &Setup| Measure::SHOWN.map(|measure| Question { setup: setup.clone(), measure }).to_vec();
    Plan {
        title: setups.first().map_or(String::new(), title),
        heads: std::iter::once("strategy".to_owned()).chain(heads).collect(),
        rows: setups.iter().map(|setup| (setup.contender.label().to_owned(), ask(setup))).collect(),
        trade_off: None,
    }
}

/// An experiment in a line.
pub(crate) fn title(setup: &Setup) -> String {
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

/// The command that makes an experiment again; folders belong to the machine, not to the experiment.
pub(crate) fn repeat(setups: &[Setup], trials: u64) -> String {
    let Some(first) = setups.first() else { return String::new() };
    let names: Vec<String> = setups.iter().map(|setup| setup.contender.name()).collect();
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

impl ExperimentArgs {
    /// Beside the results; other settings than the published ones have a report of their own.
    fn report_path(&self, setups: &[Setup]) -> PathBuf {
        let Self { dataset, corruption, lab, .. } = self;
        let folder = lab.out.join(value_name(dataset)).join(value_name(corruption));
        let own = setups.first().and_then(Setup::own_name);
        let name = own.map_or("report.html".to_owned(), |own| format!("report-{own}.html"));
        folder.join(value_name(&lab.as_published)).join(name)
    }
}

/// Writes a report, where there is to be one, and tells where.
pub(crate) fn finished(
    pending: Option<PendingReport>,
    page: impl FnOnce() -> String,
) -> Result<String, FleetError> {
    let Some(pending) = pending else { return Ok(String::new()) };
    Ok(format!("report: {}\n", pending.finish(&page())?.display()))
}

impl LabArgs {
    /// The report's file, made sure of before trials are run. Where none are run, there is a report only if it is asked for:
    /// what is shown may be less than what is there.
    pub(crate) fn pending_report(&self, default: PathBuf) -> Result<Option<PendingReport>, FleetError> {
        let path = match &self.report {
            Some(path) => path.clone(),
            None if self.no_run => return Ok(None),
            None => default,
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|cause| FleetError::Report { path: path.clone(), cause })?;
        }
        PendingReport::create(&path).map(Some)
    }

    /// Trials at the same time.
    pub(crate) fn workers(&self) -> usize {
        self.jobs.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from)
    }

    /// The records of `setups`: all of them, or those that are kept when nothing shall be run; none when interrupted. That, and
    /// which trials failed, is said on stderr.
    pub(crate) fn records(&self, setups: &[Setup]) -> Result<Option<Records>, FleetError> {
        if self.no_run {
            return Ok(Some(Records::kept(&self.out, setups)?));
        }
        let folder = data::folder(self.data.clone());
        let load: &LoadPool<'_> =
            &|setup| Ok(data::load(setup.dataset, folder.as_deref(), &Request::of(setup))?);
        let run: &RunTrial<'_> = &|setup, pool, interrupt, on_round| {
            let passes = Stream::new(Arc::clone(pool), setup)?.passes();
            Ok(Seen::of(&trial::run(setup, pool, interrupt, on_round)?, passes))
        };
        let (runtime, interrupt) = (runtime()?, Interrupt::default());
        runtime.spawn(signal::watch(interrupt.clone()));
        let laboratory =
            Laboratory { out: &self.out, jobs: self.workers(), load, run, interrupt: &interrupt };
        let progress = Progress::new(io::stderr(), Style::of_stderr(self.no_progress));
        let records = laboratory.records(setups, progress)?;
        for Failure { path, cause } in &records.failed {
            eprintln!("no figures for {}: {cause}", path.display());
        }
        if records.is_complete() {
            return Ok(Some(records));
        }
        eprintln!(
            "interrupted: {} of {} trials are done and kept in {}; the same command goes on from there",
            records.done(),
            records.wanted,
            self.out.display()
        );
        Ok(None)
    }
}
