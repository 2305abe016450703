//! `evenhand-fleet worth`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::thread;

use evenhand_program::exit::Exit;

use super::{FleetError, signal};
use crate::data::{self, AsPublished, Dataset};
use crate::experiment::worth::figures::WorthFigures;
use crate::experiment::worth::progress::TrainingProgress;
use crate::experiment::worth::run::{LoadScenario, WorthRunner};
use crate::experiment::worth::settings::WorthSettings;
use crate::scenario::{Corruption, ScenarioConfig};
use crate::sim::progress::ProgressStyle;
use crate::sim::{self, Interrupt};

/// Examples of use.
pub(super) const HELP: &str = "\
Examples:
  evenhand-fleet worth --nodes 6 --trials 1                synthetic data, every coalition
  evenhand-fleet worth --dataset mnist --data DIR --corruption heterogeneity --seed 11 --trials 3
  evenhand-fleet experiment --dataset mnist --data DIR --corruption heterogeneity --seed 11 \\
      --trials 3 --worth worth                             standings against worth

A coalition's model is trained on the pooled data of its members by SGD with momentum 0.9, as many
steps for each, and judged on clean samples of all nodes from the last quarter of the rounds. The
worth of a node is its Shapley value, by regression on coalitions of all sizes, each beside its
complement. Every training is stored in --out: Ctrl-C loses only those under way, and the same
command goes on.";

/// Flags of `evenhand-fleet worth`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct WorthArgs {
    /// Data set
    #[arg(long, value_enum, default_value_t = Dataset::Synthetic)]
    dataset: Dataset,
    /// Corruption that makes nodes' data differ in quality
    #[arg(long, value_enum, default_value_t = Corruption::FeatureNoise)]
    corruption: Corruption,
    /// The folder of data sets [default: the environment variable EVENHAND_DATA]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Trials, with seeds --seed, --seed + 1, …
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    trials: u64,
    /// The first trial's seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder of worths: a training that is there already is not run again
    #[arg(long, default_value = "worth", value_name = "DIR")]
    out: PathBuf,
    /// Authority where the published code differs from the paper
    #[arg(long, value_enum, default_value_t = AsPublished::Paper)]
    as_published: AsPublished,
    /// Trainings at the same time [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Print one JSON object on stdout instead of tables
    #[arg(long)]
    json: bool,
    /// Show no progress on stderr
    #[arg(long)]
    no_progress: bool,
    /// Do not measure the control, in which all data are equally good
    #[arg(long)]
    no_control: bool,
    /// Coalitions that are trained; all are, where there are no more [default: ten a node]
    #[arg(long, value_name = "N")]
    coalitions: Option<usize>,
    /// Steps of each training
    #[arg(long, value_name = "N")]
    steps: Option<usize>,
    /// Samples of a step
    #[arg(long, value_name = "N")]
    step_samples: Option<usize>,
    /// The learning rate [default: the best for all nodes of 1, 3, 10, 30 and 100 times the published one]
    #[arg(long, value_name = "ETA")]
    learning_rate: Option<f64>,
    /// Held-out samples that models are judged on, at most
    #[arg(long, value_name = "N")]
    held_out: Option<usize>,
    /// Nodes, N
    #[arg(long, value_name = "N")]
    nodes: Option<usize>,
    /// Rounds of data, T
    #[arg(long, value_name = "T")]
    rounds: Option<u32>,
    /// Samples of a node in a round
    #[arg(long, value_name = "SAMPLES")]
    batch: Option<usize>,
    /// The largest ζ: the quality of the worst node's data
    #[arg(long, value_name = "ZETA")]
    level: Option<f64>,
}

impl WorthArgs {
    /// The settings of the first seed.
    fn settings(&self) -> WorthSettings {
        let base = WorthSettings::published(self.dataset, self.corruption, self.as_published, self.seed);
        let nodes = self.nodes.unwrap_or(base.scenario.nodes);
        WorthSettings {
            scenario: ScenarioConfig {
                level: self.level.unwrap_or(base.scenario.level),
                nodes,
                rounds: self.rounds.unwrap_or(base.scenario.rounds),
                batch: self.batch.unwrap_or(base.scenario.batch),
                ..base.scenario
            },
            coalitions: self.coalitions.unwrap_or(nodes.saturating_mul(10)),
            steps: self.steps.unwrap_or(base.steps),
            step_samples: self.step_samples.unwrap_or(base.step_samples),
            learning_rate: self.learning_rate,
            held_out: self.held_out.unwrap_or(base.held_out),
        }
    }

    fn workers(&self) -> usize {
        self.jobs.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from)
    }
}

/// Measures the worth of nodes and prints it.
pub(super) fn run(args: &WorthArgs) -> Result<Exit, FleetError> {
    let first = args.settings();
    first.check()?;
    let seeds = |settings: WorthSettings| {
        (0..args.trials).map(move |trial| settings.with_seed(args.seed.wrapping_add(trial)))
    };
    let trials: Vec<WorthSettings> = seeds(first.clone()).collect();
    let control: Vec<WorthSettings> =
        first.control().filter(|_| !args.no_control).into_iter().flat_map(seeds).collect();
    let folder = data::folder(args.data.clone());
    let load: &LoadScenario<'_> =
        &|scenario| Ok(data::load(scenario.dataset, folder.as_deref(), &scenario.data_request())?);
    let (runtime, interrupt) = (sim::runtime()?, Interrupt::default());
    runtime.spawn(signal::watch(interrupt.clone()));
    let runner = WorthRunner { out: &args.out, jobs: args.workers(), load, interrupt: &interrupt };
    let wanted = (trials.len() + control.len()) * (first.coalitions + first.learning_rates().len() + 1);
    let style = ProgressStyle::of_stderr(args.no_progress);
    let mut progress = TrainingProgress::new(io::stderr(), style, wanted);
    let mut found = [Vec::new(), Vec::new()];
    for (part, settings) in [(0, &trials), (1, &control)] {
        for settings in settings {
            match runner.truth(settings, &mut progress)? {
                Some(truth) => found[part].push(truth),
                None => {
                    progress.finish();
                    eprintln!(
                        "interrupted: the trainings that are done are stored in {}; the same command goes on from there",
                        args.out.display()
                    );
                    return Ok(Exit::Interrupted);
                }
            }
        }
    }
    progress.finish();
    let [trials, control] = found;
    let figures = WorthFigures::of(trials, control);
    let text = if args.json {
        serde_json::to_string(&figures).map_err(|error| FleetError::Output(error.into()))? + "\n"
    } else {
        figures.text()
    };
    io::stdout().lock().write_all(text.as_bytes()).map_err(FleetError::Output)?;
    Ok(Exit::Ok)
}
