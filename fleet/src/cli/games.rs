//! `evenhand-fleet games`.

use std::io::{self, Write};
use std::path::PathBuf;

use evenhand_agents::GridGame;
use evenhand_program::exit::Exit;

use super::report_file::ReportFile;
use super::trial_args::finished;
use super::{FleetError, signal};
use crate::data::AsPublished;
use crate::experiment::ExperimentError;
use crate::experiment::games::{
    GameEngine, GameProgress, GameRunner, GameSetup, GameTable, page, published_strategies,
};
use crate::experiment::variant::Variants;
use crate::scenario::AgentCorruption;
use crate::sim::progress::ProgressStyle;
use crate::sim::{self, Interrupt};

/// Examples of use.
pub(super) const HELP: &str = "\
Examples:
  evenhand-fleet games --task breakout --corruption state-noise --trials 1
  evenhand-fleet games --task pong,breakout,space-invaders --corruption reward-noise,state-noise
                                                         the published table, ours beside it
  evenhand-fleet games --task breakout --corruption memory --strategy paper --trials 3
  evenhand-fleet games --task pong --engine atari --python venv/bin/python --corruption state-noise

A trial that is stored is not run again; an interrupted command goes on from there.";

/// Flags of `evenhand-fleet games`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct GamesArgs {
    /// Games, with commas: breakout, pong, space-invaders
    #[arg(long, value_delimiter = ',', default_value = "breakout", value_name = "G,…")]
    task: Vec<GridGame>,
    /// Engine of the games
    #[arg(long, value_enum, default_value_t)]
    engine: GameEngine,
    /// What makes agents differ, with commas
    #[arg(long, value_enum, value_delimiter = ',', default_value = "reward-noise", value_name = "C,…")]
    corruption: Vec<AgentCorruption>,
    /// Strategies, with commas [default: those of the published table]
    #[arg(long, value_name = "S|all|S,S,…")]
    strategy: Option<Variants>,
    /// Trials of each strategy, with seeds --seed, --seed + 1, …
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    trials: u64,
    /// The first trial's seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder of results: a trial that is there already is not run again
    #[arg(long, default_value = "experiments", value_name = "DIR")]
    out: PathBuf,
    /// Authority where the published code differs from the paper
    #[arg(long, value_enum, default_value_t = AsPublished::Paper)]
    as_published: AsPublished,
    /// T [default: 450]
    #[arg(long, value_name = "T")]
    rounds: Option<u32>,
    /// N [default: 5]
    #[arg(long, value_name = "N")]
    nodes: Option<usize>,
    /// Decisions of an agent in a round [default: 2000]
    #[arg(long, value_name = "N")]
    decisions: Option<u64>,
    /// Decisions between two gradient steps [default: 2]
    #[arg(long, value_name = "N")]
    train_every: Option<u64>,
    /// The target network; the published code in fact has none
    #[arg(long, value_enum, value_name = "T")]
    target: Option<TargetChoice>,
    /// Nodes drawn in a round [default: 2]
    #[arg(long, value_name = "K")]
    k: Option<usize>,
    /// β [default: 0.01]
    #[arg(long, value_name = "BETA")]
    temperature: Option<f64>,
    /// τ: rounds that the stop rule looks at [default: 20]
    #[arg(long, value_name = "TAU")]
    window: Option<usize>,
    /// α: exploring ends when the stop rule's p-value reaches it [default: 0.95]
    #[arg(long, value_name = "ALPHA")]
    alpha: Option<f64>,
    /// How much agents differ: 1 as published, 0 not at all, which is the control
    #[arg(long, value_name = "LEVEL")]
    level: Option<f64>,
    /// The control as well: the same trials with agents that do not differ
    #[arg(long)]
    control: bool,
    /// The Python that has ale-py, for --engine atari
    #[arg(long, default_value = "python3", value_name = "PATH")]
    python: PathBuf,
    /// Run nothing; show the trials that are there
    #[arg(long)]
    no_run: bool,
    /// Print one JSON object on stdout instead of a table
    #[arg(long)]
    json: bool,
    /// Show no progress on stderr
    #[arg(long)]
    no_progress: bool,
    /// Path of the HTML report [default: games/report.html in the folder of results]
    #[arg(long, value_name = "PATH")]
    report: Option<PathBuf>,
}

/// A target network, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum TargetChoice {
    /// A copy of the weights, renewed from time to time
    Copy,
    /// The weights themselves
    None,
}

impl GamesArgs {
    fn setups(&self) -> Result<Vec<GameSetup>, FleetError> {
        let strategies = self.strategy.as_ref().map_or_else(published_strategies, |wanted| wanted.0.clone());
        let mut setups = Vec::new();
        for &task in &self.task {
            for &corruption in &self.corruption {
                for &variant in &strategies {
                    let (engine, as_published) = (self.engine, self.as_published);
                    let base =
                        GameSetup::published(task, engine, corruption, variant, as_published, self.seed);
                    let setup = GameSetup {
                        rounds: self.rounds.unwrap_or(base.rounds),
                        nodes: self.nodes.unwrap_or(base.nodes),
                        decisions: self.decisions.unwrap_or(base.decisions),
                        train_every: self.train_every.unwrap_or(base.train_every),
                        no_target: self.target.map_or(base.no_target, |target| target == TargetChoice::None),
                        k: self.k.unwrap_or(base.k),
                        temperature: self.temperature.unwrap_or(base.temperature),
                        window: self.window.unwrap_or(base.window),
                        alpha: self.alpha.unwrap_or(base.alpha),
                        level: self.level.unwrap_or(base.level),
                        ..base
                    };
                    setup.check()?;
                    setups.extend((0..self.trials).map(|trial| setup.with_seed(self.seed + trial)));
                }
            }
        }
        if self.control {
            let controls: Vec<GameSetup> = setups.iter().filter_map(GameSetup::control).collect();
            setups.extend(controls);
        }
        Ok(setups)
    }

    fn report_file(&self) -> Result<Option<ReportFile>, FleetError> {
        let path = match &self.report {
            Some(path) => path.clone(),
            None if self.no_run => return Ok(None),
            None => self.out.join("games").join("report.html"),
        };
        if let Some(folder) = path.parent() {
            let failed = |cause| FleetError::Report { path: path.clone(), cause };
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        ReportFile::create(&path).map(Some)
    }
}

/// Runs the missing trials and prints their table.
pub(super) fn run(args: &GamesArgs) -> Result<Exit, FleetError> {
    let setups = args.setups()?;
    let file = args.report_file()?;
    let (runtime, interrupt) = (sim::runtime()?, Interrupt::default());
    runtime.spawn(signal::watch(interrupt.clone()));
    let runner = GameRunner { out: &args.out, python: &args.python, interrupt: &interrupt };
    let records = if args.no_run {
        runner.stored(&setups).map_err(ExperimentError::from)?
    } else {
        let progress = GameProgress::new(io::stderr(), ProgressStyle::of_stderr(args.no_progress));
        runner.records(&setups, progress)?
    };
    let command = std::env::args().collect::<Vec<_>>().join(" ");
    let report = finished(file, || page::page(&records, &command))?;
    let table = GameTable::of(&records);
    let text = if args.json {
        serde_json::to_string(&table).map_err(|error| FleetError::Output(error.into()))? + "\n"
    } else {
        table.text() + &report
    };
    io::stdout().lock().write_all(text.as_bytes()).map_err(FleetError::Output)?;
    if records.len() < setups.len() && !args.no_run {
        eprintln!(
            "interrupted: {} of {} trials are done and stored in {}; the same command goes on from there",
            records.len(),
            setups.len(),
            args.out.display()
        );
        return Ok(Exit::Interrupted);
    }
    Ok(Exit::Ok)
}
