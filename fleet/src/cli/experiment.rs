//! `evenhand-fleet experiment`.

use std::io::{self, Write};
use std::path::PathBuf;

use evenhand_fairness::Utility;
use evenhand_federation::OptimiserKind;
use evenhand_program::exit::Exit;

use super::trial_args::{TrialArgs, finished};
use super::{FleetError, by_name, find_rate};
use crate::data::Dataset;
use crate::experiment::ExperimentError;
use crate::experiment::comparison::filled_table;
use crate::experiment::page;
use crate::experiment::rate;
use crate::experiment::setup::{Setup, StepKind};
use crate::experiment::setup_check::SettingError;
use crate::experiment::stop_prediction::StopPrediction;
use crate::experiment::summary::ExperimentFigures;
use crate::experiment::table::seeds;
use crate::experiment::variant::{Variant, Variants};
use crate::experiment::worth::truth;
use crate::names::value_name;
use crate::scenario::{Corruption, QualitySpread};

/// Examples of use.
pub(super) const HELP: &str = "\
Examples:
  evenhand-fleet experiment                              all strategies, synthetic data
  evenhand-fleet experiment --dataset mnist --data DIR   MNIST with feature noise
  evenhand-fleet experiment --dataset mnist --data DIR --corruption label-noise \\
      --strategy evenhand,paper-credit,fedavg --trials 10
  evenhand-fleet experiment --dataset mnist --data DIR --find-rate

Every finished trial is a file in --out: Ctrl-C loses only the trials under way, and the same
command goes on.
Figures are means ± standard errors over trials; – is what a strategy does not have.";

/// Flags of `evenhand-fleet experiment`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ExperimentCommand {
    /// The trials.
    #[command(flatten)]
    pub args: ExperimentArgs,
    /// Run FedAvg with all nodes in every round at 1, 3, 10, 30 and 100 times the learning rate instead, and print which
    /// scores best online
    #[arg(long, conflicts_with_all = ["strategy", "rate_factor", "k"])]
    pub find_rate: bool,
    /// Run every strategy whose standings come from the utility of updates once with each utility
    #[arg(long, conflicts_with_all = ["find_rate", "utility"])]
    pub every_utility: bool,
    /// Do not run the control, in which all data are equally good: its correlations stand beside the others
    #[arg(long)]
    pub no_control: bool,
    /// Folder of worths, as `evenhand-fleet worth` makes them: standings are compared with them too
    #[arg(long, value_name = "DIR")]
    pub worth: Option<PathBuf>,
}

/// Flags of trials of several strategies
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ExperimentArgs {
    /// Data set
    #[arg(long, value_enum, default_value_t = Dataset::Synthetic)]
    pub dataset: Dataset,
    /// Corruption that makes nodes' data differ in quality
    #[arg(long, value_enum, default_value_t = Corruption::FeatureNoise)]
    pub corruption: Corruption,
    /// A strategy, or several with commas: evenhand, paper, paper-without-replacement, paper-credit, paper-calibrated,
    /// paper-calibrated-credit, fedavg, q-ffl, fgfl, gog, standalone, cons, oracle; or all, which is all of these but
    /// paper-calibrated-credit and oracle
    #[arg(long, default_value = "all", value_name = "S|all|S,S,…")]
    pub strategy: Variants,
    /// Flags of every command that runs trials.
    #[command(flatten)]
    pub trials: TrialArgs,
    /// Settings other than the published ones.
    #[command(flatten)]
    pub overrides: Overrides,
}

/// Settings other than the published ones
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Settings other than the published ones, which are the defaults")]
pub(crate) struct Overrides {
    /// Nodes, N
    #[arg(long, value_name = "N")]
    pub nodes: Option<usize>,
    /// Rounds, T
    #[arg(long, value_name = "T")]
    pub rounds: Option<u32>,
    /// Samples of a node's batch in a round
    #[arg(long, value_name = "SAMPLES")]
    pub batch: Option<usize>,
    /// The learning rate, η
    #[arg(long, value_name = "ETA")]
    pub learning_rate: Option<f64>,
    /// The learning rate as a multiple of the published one; `experiment --find-rate` finds the useful one
    #[arg(long, value_name = "F", conflicts_with = "learning_rate")]
    pub rate_factor: Option<f64>,
    /// Optimiser of the nodes: none, momentum or adam
    #[arg(long, value_name = "NAME", value_parser = by_name::<OptimiserKind>)]
    pub optimiser: Option<OptimiserKind>,
    /// Utility of a coalition of updates: cosine, direction, projection, inner-product or leave-one-out
    #[arg(long, value_name = "NAME", value_parser = by_name::<Utility>)]
    pub utility: Option<Utility>,
    /// Step where not everybody answers: mean, or published, which is k/N as long [default: mean for evenhand and our data
    /// sets, otherwise published]
    #[arg(long, value_enum, value_name = "NAME")]
    pub step: Option<StepKind>,
    /// Nodes drawn in a round
    #[arg(long, value_name = "K")]
    pub k: Option<usize>,
    /// β: small is strict, large is equal
    #[arg(long, value_name = "BETA")]
    pub temperature: Option<f64>,
    /// τ: rounds over which the standings must have settled
    #[arg(long, value_name = "TAU")]
    pub window: Option<usize>,
    /// M: nodes whose contributions the stop rule tests
    #[arg(long, value_name = "M")]
    pub tested_nodes: Option<usize>,
    /// α: exploring ends when the stop rule's p-value reaches it
    #[arg(long, value_name = "ALPHA")]
    pub alpha: Option<f64>,
    /// The largest ζ: the quality of the worst node's data
    #[arg(long, value_name = "ZETA")]
    pub level: Option<f64>,
    /// Nodes add noise, and this is the ε that the whole trial costs a sample, or a day's readings, at δ = 10⁻⁵
    #[arg(long, value_name = "EPSILON")]
    pub epsilon: Option<f64>,
    /// With --epsilon, the length to which gradients are clipped
    #[arg(long, value_name = "LENGTH")]
    pub clip: Option<f64>,
    /// Nodes whose data are worse: ladder, or designated, which is three tenths of them
    #[arg(long, value_enum, value_name = "NAME")]
    pub spread: Option<QualitySpread>,
    /// Share of the nodes that contribute from five rounds before exploring would end
    #[arg(long, value_name = "SHARE")]
    pub attendance: Option<f64>,
    /// When the node of the highest standing takes exploring to be over, and contributes no more: non-stop, random, poisson
    #[arg(long, value_enum, value_name = "NAME")]
    pub prediction: Option<StopPrediction>,
    /// A negative control: after exploring, every reward goes to another node than was drawn
    #[arg(long)]
    pub shuffled: bool,
}

impl Overrides {
    /// The learning rate where `published` is the published one.
    pub(super) fn learning_rate(&self, published: f64) -> f64 {
        let factor = self.rate_factor.map_or(published, |factor| rate::scaled(published, factor));
        self.learning_rate.unwrap_or(factor)
    }
}

impl ExperimentArgs {
    /// The setups of the first trial, one a strategy.
    fn setups(&self) -> Result<Vec<Setup>, SettingError> {
        self.strategy.0.iter().map(|&variant| self.setup(variant)).collect()
    }

    pub(super) fn setup(&self, variant: Variant) -> Result<Setup, SettingError> {
        let Self { dataset, corruption, trials, overrides, .. } = self;
        let base = Setup::published(*dataset, *corruption, variant, trials.as_published, trials.seed);
        let setup = Setup {
            level: overrides.level.unwrap_or(base.level),
            nodes: overrides.nodes.unwrap_or(base.nodes),
            rounds: overrides.rounds.unwrap_or(base.rounds),
            batch: overrides.batch.unwrap_or(base.batch),
            learning_rate: overrides.learning_rate(base.learning_rate),
            optimiser: overrides.optimiser.unwrap_or(base.optimiser),
            utility: overrides.utility.unwrap_or(base.utility),
            step: overrides.step.unwrap_or(base.step),
            k: overrides.k.unwrap_or(base.k),
            temperature: overrides.temperature.unwrap_or(base.temperature),
            window: overrides.window.unwrap_or(base.window),
            tested_nodes: overrides.tested_nodes.unwrap_or(base.tested_nodes),
            alpha: overrides.alpha.unwrap_or(base.alpha),
            spread: overrides.spread.unwrap_or(base.spread),
            attendance: overrides.attendance.unwrap_or(base.attendance),
            prediction: overrides.prediction.unwrap_or(base.prediction),
            evaluation_samples: trials.evaluation_samples,
            epsilon: overrides.epsilon.unwrap_or(base.epsilon),
            clip: overrides.clip.unwrap_or(base.clip),
            shuffled: overrides.shuffled,
            ..base
        };
        setup.check()?;
        Ok(setup)
    }
}

impl ExperimentArgs {
    /// Beside the results; other settings than the published ones have a report of their own.
    fn report_path(&self, setups: &[Setup]) -> PathBuf {
        let Self { dataset, corruption, trials, .. } = self;
        let folder = trials.out.join(value_name(dataset)).join(value_name(corruption));
        let own = setups.first().and_then(Setup::own_name);
        let name = own.map_or("report.html".to_owned(), |own| format!("report-{own}.html"));
        folder.join(value_name(&trials.as_published)).join(name)
    }
}

/// Runs the missing trials of an experiment and prints its table.
pub(super) fn run(command: &ExperimentCommand) -> Result<Exit, FleetError> {
    let args = &command.args;
    if command.find_rate {
        return find_rate::run(args);
    }
    let mut setups = args.setups()?;
    if command.every_utility {
        setups = setups.iter().flat_map(Setup::with_every_utility).collect();
    }
    let trials = args.trials.trials;
    let own = || setups.iter().flat_map(|setup| seeds(setup, trials));
    let control = own().filter(|_| !command.no_control).filter_map(|setup| setup.control());
    let wanted: Vec<Setup> = own().chain(control).collect();
    let file = args.trials.report_file(args.report_path(&setups))?;
    let Some(mut records) = args.trials.records(&wanted)? else { return Ok(Exit::Interrupted) };
    if let Some(folder) = &command.worth {
        records =
            records.with_worths(|setup| truth::worths(folder, setup)).map_err(ExperimentError::Worth)?;
    }
    let report = finished(file, || page::experiment(&setups, trials, &records))?;
    let text = if args.trials.json {
        let figures = ExperimentFigures::of(&setups, trials, &records);
        serde_json::to_string(&figures).map_err(|error| FleetError::Output(error.into()))? + "\n"
    } else {
        filled_table(&setups, trials, &records).text() + &report
    };
    io::stdout().lock().write_all(text.as_bytes()).map_err(FleetError::Output)?;
    Ok(records.exit())
}
