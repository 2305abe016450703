//! `evenhand-fleet year`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use evenhand_federation::{ExploitingConfig, TrainingConfig};
use evenhand_node::source::time::TimeFormat;
use evenhand_node::time_zone::LocalTimeZone;
use evenhand_program::exit::Exit;

use super::report_file::ReportFile;
use super::{FleetError, signal};
use crate::data::{self, Dataset, RecordedSeries};
use crate::experiment::year::{self, HouseholdSet, YearError, YearProgress, YearSettings};
use crate::sim::progress::ProgressStyle;
use crate::sim::{self, Interrupt};

/// Examples of use.
pub(super) const HELP: &str = "\
Examples:
  evenhand-fleet year --data DIR                     households that were not used for choosing settings
  evenhand-fleet year --data DIR --choose            forty households, first half: to choose settings on
  evenhand-fleet year --data DIR --homes 10 --months 3
  evenhand-fleet year --data DIR --dataset electricity";

/// Flags of `evenhand-fleet year`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct YearArgs {
    /// Folder of all data sets [default: EVENHAND_DATA]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Data set: meters, or electricity (the German load, each year a node)
    #[arg(long, value_enum, default_value_t = Dataset::Meters)]
    dataset: Dataset,
    /// The households on which settings are chosen, in the first half of the time, instead of the others
    #[arg(long, conflicts_with = "all")]
    choose: bool,
    /// All households
    #[arg(long)]
    all: bool,
    /// At most so many households
    #[arg(long, value_name = "N")]
    homes: Option<usize>,
    /// First day
    #[arg(long, value_name = "DATE", default_value = "2013-01-01")]
    from: String,
    /// The day after the last one
    #[arg(long, value_name = "DATE", default_value = "2014-01-01")]
    to: String,
    /// So many months from the first day, instead of --to
    #[arg(long, value_name = "M", conflicts_with = "to")]
    months: Option<u32>,
    /// Rounds a day
    #[arg(long, default_value_t = 2, value_name = "N")]
    rounds_a_day: u32,
    /// Draws a round [default: the coordinator's]
    #[arg(long, value_name = "K")]
    k: Option<u32>,
    /// Share of the households that are there from the beginning
    #[arg(long, default_value_t = 0.75, value_name = "SHARE")]
    founders: f64,
    /// The others join one after another within so many days
    #[arg(long, default_value_t = 150, value_name = "DAYS")]
    join_days: u32,
    /// Hours between two forecasts that are judged
    #[arg(long, default_value_t = 3, value_name = "H")]
    stride_h: u32,
    /// Local steps of an update
    #[arg(long, default_value_t = TrainingConfig::default().local_epochs, value_name = "STEPS")]
    local_steps: u32,
    /// Step size of local training
    #[arg(long, default_value_t = TrainingConfig::default().local_learning_rate, value_name = "ETA")]
    learning_rate: f32,
    /// Momentum of local training
    #[arg(long, default_value_t = TrainingConfig::default().local_momentum, value_name = "MU")]
    momentum: f32,
    /// Rows of an update, at most
    #[arg(long, default_value_t = TrainingConfig::default().samples_max, value_name = "ROWS")]
    samples: u32,
    /// Days of readings from which the rows of an update are taken
    #[arg(long, default_value_t = 30, value_name = "DAYS")]
    history_days: u32,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON object on stdout instead of the table
    #[arg(long)]
    json: bool,
    /// Show no progress on stderr
    #[arg(long)]
    no_progress: bool,
    /// Path of the HTML report
    #[arg(long, value_name = "PATH", default_value = "evenhand-year.html")]
    report: PathBuf,
}

impl YearArgs {
    fn settings(&self) -> Result<YearSettings, YearError> {
        let date = |flag: &'static str, text: &str| {
            let found = TimeFormat::Iso.parse(&format!("{text}T00:00:00Z"), &LocalTimeZone::default());
            found.ok_or(YearError::Date { flag, found: text.to_owned() })
        };
        let from = date("--from", &self.from)?;
        let to = match self.months {
            Some(months) => from + i64::from(months) * 365 * 86_400_000 / 12,
            None => date("--to", &self.to)?,
        };
        Ok(YearSettings {
            dataset: self.dataset,
            set: match (self.choose, self.all) {
                (true, _) => HouseholdSet::Choosing,
                (_, true) => HouseholdSet::All,
                _ => HouseholdSet::Others,
            },
            homes_max: self.homes,
            period_ms: from..to,
            seed: self.seed,
            rounds_a_day: self.rounds_a_day,
            k: self.k.unwrap_or(ExploitingConfig::default().k),
            founders: self.founders,
            join_days: self.join_days,
            stride_h: self.stride_h,
            epochs: self.local_steps,
            learning_rate: self.learning_rate,
            momentum: self.momentum,
            samples_max: self.samples,
            history_days: self.history_days,
        })
    }
}

/// Runs a year and prints its figures.
pub(super) fn run(args: &YearArgs) -> Result<Exit, FleetError> {
    let settings = args.settings()?;
    let report = ReportFile::create(&args.report)?;
    let (runtime, interrupt) = (sim::runtime()?, Interrupt::default());
    runtime.spawn(signal::watch(interrupt.clone()));
    let folder = data::folder(args.data.clone());
    let recorded: Vec<RecordedSeries> = data::recorded_series(args.dataset, folder.as_deref())?;
    let style = ProgressStyle::of_stderr(args.no_progress);
    let began = Instant::now();
    let mut progress = |at: YearProgress| show(at, began, style);
    let Some(figures) = year::run(&settings, &recorded, &interrupt, &mut progress)? else {
        eprintln!("interrupted: a year is not stored on the way; run the same command again");
        return Ok(Exit::Interrupted);
    };
    let words: Vec<String> = std::env::args().skip(1).collect();
    let path = report.finish(&year::page(&figures, &format!("evenhand-fleet {}", words.join(" "))))?;
    let text = match args.json {
        true => serde_json::to_string(&figures).map_err(|error| FleetError::Output(error.into()))? + "\n",
        false => format!("{}report: {}\n", figures.text(), path.display()),
    };
    io::stdout().lock().write_all(text.as_bytes()).map_err(FleetError::Output)?;
    Ok(Exit::Ok)
}

fn show(at: YearProgress, began: Instant, style: ProgressStyle) {
    let YearProgress { day, days } = at;
    let left = began.elapsed().as_secs_f64() / day as f64 * (days - day) as f64;
    match style {
        ProgressStyle::Live { .. } => eprint!("\rday {day} of {days}, {left:.0} s left\x1b[K"),
        ProgressStyle::Plain if day.is_multiple_of(30) => eprintln!("day {day} of {days}, {left:.0} s left"),
        ProgressStyle::Plain | ProgressStyle::Silent => {}
    }
    if day == days && matches!(style, ProgressStyle::Live { .. }) {
        eprintln!();
    }
}
