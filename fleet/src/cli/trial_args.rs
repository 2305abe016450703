//! Flags of everything that runs trials.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use evenhand_federation::ClosedRound;

use super::report_file::ReportFile;
use super::{FleetError, signal};
use crate::data::{self, AsPublished};
use crate::experiment::ExperimentError;
use crate::experiment::details::TrialDetails;
use crate::experiment::detection::DetectionCounts;
use crate::experiment::progress::TrialProgress;
use crate::experiment::record::TrialResult;
use crate::experiment::runner::{FailedTrial, LoadPool, RunTrial, TrialRecords, TrialRunner};
use crate::experiment::setup::Setup;
use crate::experiment::trial;
use crate::scenario::SampleStream;
use crate::sim::progress::ProgressStyle;
use crate::sim::{self, Interrupt};

/// Flags of everything that runs trials
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TrialArgs {
    /// The folder of data sets [default: the environment variable EVENHAND_DATA]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Trials of each strategy, with seeds --seed, --seed + 1, …
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub trials: u64,
    /// The first trial's seed; all strategies of a trial see the same data
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Folder of results: a trial that is there already is not run again
    #[arg(long, default_value = "experiments", value_name = "DIR")]
    pub out: PathBuf,
    /// Authority where the published code differs from the paper
    #[arg(long, value_enum, default_value_t = AsPublished::Paper)]
    pub as_published: AsPublished,
    /// Trials at the same time [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Score models on so many of the next round's samples, chosen at random; 0 for all. Faster, and hardly less precise
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub evaluation_samples: usize,
    /// Run nothing; show the trials that are there
    #[arg(long)]
    pub no_run: bool,
    /// Print one JSON object on stdout instead of tables
    #[arg(long)]
    pub json: bool,
    /// Show no progress on stderr
    #[arg(long)]
    pub no_progress: bool,
    /// Path of the HTML report [default: beside the results]
    #[arg(long, value_name = "PATH")]
    pub report: Option<PathBuf>,
}

/// Writes a report, where there is to be one; returns a line with its path.
pub(crate) fn finished(
    file: Option<ReportFile>,
    page: impl FnOnce() -> String,
) -> Result<String, FleetError> {
    let Some(file) = file else { return Ok(String::new()) };
    Ok(format!("report: {}\n", file.finish(&page())?.display()))
}

impl TrialArgs {
    /// The report's file, created before trials are run. Where none are run, there is a report only if it is asked for: it
    /// may show less than the one that is there.
    pub(crate) fn report_file(&self, default: PathBuf) -> Result<Option<ReportFile>, FleetError> {
        let path = match &self.report {
            Some(path) => path.clone(),
            None if self.no_run => return Ok(None),
            None => default,
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|cause| FleetError::Report { path: path.clone(), cause })?;
        }
        ReportFile::create(&path).map(Some)
    }

    /// Trials at the same time.
    pub(crate) fn workers(&self) -> usize {
        self.jobs.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from)
    }

    /// The records of `setups`: all of them, or the stored ones with `--no-run`; none when interrupted. That, and which
    /// trials failed, is printed on stderr.
    pub(crate) fn records(&self, setups: &[Setup]) -> Result<Option<TrialRecords>, FleetError> {
        if self.no_run {
            return Ok(Some(TrialRecords::stored(&self.out, setups).map_err(ExperimentError::Record)?));
        }
        let folder = data::folder(self.data.clone());
        let load: &LoadPool<'_> =
            &|setup| Ok(data::load(setup.dataset, folder.as_deref(), &setup.scenario().data_request())?);
        let run: &RunTrial<'_> = &|setup, pool, interrupt, on_round| {
            let stream = SampleStream::new(Arc::clone(pool), &setup.scenario())?;
            let (passes, naive) = (stream.passes(), stream.naive_scores());
            let mut detections = DetectionCounts::default();
            let mut count = |closed: &ClosedRound| {
                detections.add(closed);
                on_round(closed.round);
            };
            let run = trial::run(setup, pool, interrupt, &mut count)?;
            let result = TrialResult::of(&run, passes);
            Ok(TrialResult { detections, details: TrialDetails { naive, ..result.details }, ..result })
        };
        let (runtime, interrupt) = (sim::runtime()?, Interrupt::default());
        runtime.spawn(signal::watch(interrupt.clone()));
        let runner = TrialRunner { out: &self.out, jobs: self.workers(), load, run, interrupt: &interrupt };
        let progress = TrialProgress::new(io::stderr(), ProgressStyle::of_stderr(self.no_progress));
        let records = runner.records(setups, progress)?;
        for FailedTrial { path, cause } in &records.failed {
            eprintln!("no figures for {}: {cause}", path.display());
        }
        if records.is_complete() {
            return Ok(Some(records));
        }
        eprintln!(
            "interrupted: {} of {} trials are done and stored in {}; the same command goes on from there",
            records.done(),
            records.wanted,
            self.out.display()
        );
        Ok(None)
    }
}
