//! Flags of `evenhand-fleet experiment`, and those it shares with `evenhand-fleet paper`.

use std::path::PathBuf;

use evenhand_fairness::Utility;
use evenhand_federation::OptimiserKind;

use super::contender::Contenders;
use super::setup::{AsPublished, Contender, Setup};
use crate::cli::by_name;
use crate::corruption::Corruption;
use crate::data::Dataset;

/// Flags of everything that runs trials
#[derive(Debug, Clone, clap::Args)]
pub struct LabArgs {
    /// The folder of data sets [default: the environment variable EVENHAND_DATA]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Trials of each strategy, with seeds --seed, --seed + 1, …
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub trials: u64,
    /// The first trial's seed; all strategies of a trial see the same data
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where results are kept: a trial that is there already is not run again
    #[arg(long, default_value = "experiments", value_name = "DIR")]
    pub out: PathBuf,
    /// Where the published code differs from the paper: whom to follow
    #[arg(long, value_enum, default_value_t = AsPublished::Paper)]
    pub as_published: AsPublished,
    /// Trials at the same time [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Score models on so many of the next round's samples, chosen at random; 0 for all. Quicker, and hardly less precise
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub questions: usize,
    /// Run nothing; show the trials that are there
    #[arg(long)]
    pub no_run: bool,
    /// Print one JSON object on stdout instead of tables
    #[arg(long)]
    pub json: bool,
    /// Show no progress on stderr
    #[arg(long)]
    pub no_progress: bool,
    /// Where the HTML report goes [default: beside the results]
    #[arg(long, value_name = "PATH")]
    pub report: Option<PathBuf>,
}

/// Flags of `evenhand-fleet experiment`
#[derive(Debug, Clone, clap::Args)]
pub struct ExperimentArgs {
    /// What is learned
    #[arg(long, value_enum, default_value_t = Dataset::Synthetic)]
    pub dataset: Dataset,
    /// What makes one node's data worse than another's
    #[arg(long, value_enum, default_value_t = Corruption::FeatureNoise)]
    pub corruption: Corruption,
    /// A strategy, or several with commas: evenhand, evenhand-without-replacement, evenhand-credit, evenhand-calibrated,
    /// evenhand-calibrated-credit, fedavg, q-ffl, fgfl, gog, standalone, cons; or all, which is all of these but
    /// evenhand-calibrated-credit
    #[arg(long, default_value = "all", value_name = "S|all|S,S,…")]
    pub strategy: Contenders,
    /// What every command that runs trials takes.
    #[command(flatten)]
    pub lab: LabArgs,
    /// What differs from the published settings.
    #[command(flatten)]
    pub own: Overrides,
}

/// Settings other than the published ones
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Settings other than the published ones, which are the defaults")]
pub struct Overrides {
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
    /// What nodes make of their gradients: none, momentum or adam
    #[arg(long, value_name = "NAME", value_parser = by_name::<OptimiserKind>)]
    pub optimiser: Option<OptimiserKind>,
    /// What a coalition of updates is worth: cosine, course, projection, inner-product or leave-one-out
    #[arg(long, value_name = "NAME", value_parser = by_name::<Utility>)]
    pub utility: Option<Utility>,
    /// Nodes drawn in a round
    #[arg(long, value_name = "K")]
    pub k: Option<usize>,
    /// β: small is strict, large is equal
    #[arg(long, value_name = "BETA")]
    pub temperature: Option<f64>,
    /// τ: rounds over which the standings must have settled
    #[arg(long, value_name = "TAU")]
    pub window: Option<usize>,
    /// M: nodes whose contributions the stop rule watches
    #[arg(long, value_name = "M")]
    pub watched: Option<usize>,
    /// α: exploring ends when the stop rule's p-value reaches it
    #[arg(long, value_name = "ALPHA")]
    pub strictness: Option<f64>,
    /// The largest ζ: how bad the worst node's data are
    #[arg(long, value_name = "ZETA")]
    pub level: Option<f64>,
    /// A negative control: after exploring, every reward goes to another node than was drawn
    #[arg(long)]
    pub shuffled: bool,
}

/// A setting that makes no experiment.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("--{flag} {value}: {wish}")]
pub struct SettingError {
    /// Which.
    pub flag: &'static str,
    /// What was given.
    pub value: String,
    /// What it should be.
    pub wish: String,
}

impl ExperimentArgs {
    /// The setups of the first trial, one a strategy.
    pub fn setups(&self) -> Result<Vec<Setup>, SettingError> {
        self.strategy.0.iter().map(|&contender| self.setup(contender)).collect()
    }

    fn setup(&self, contender: Contender) -> Result<Setup, SettingError> {
        let Self { dataset, corruption, lab, own, .. } = self;
        let base = Setup::published(*dataset, *corruption, contender, lab.as_published, lab.seed);
        let setup = Setup {
            level: own.level.unwrap_or(base.level),
            nodes: own.nodes.unwrap_or(base.nodes),
            rounds: own.rounds.unwrap_or(base.rounds),
            batch: own.batch.unwrap_or(base.batch),
            learning_rate: own.learning_rate.unwrap_or(base.learning_rate),
            optimiser: own.optimiser.unwrap_or(base.optimiser),
            utility: own.utility.unwrap_or(base.utility),
            k: own.k.unwrap_or(base.k),
            temperature: own.temperature.unwrap_or(base.temperature),
            window: own.window.unwrap_or(base.window),
            watched: own.watched.unwrap_or(base.watched),
            strictness: own.strictness.unwrap_or(base.strictness),
            questions: lab.questions,
            shuffled: own.shuffled,
            ..base
        };
        check(&setup)?;
        Ok(setup)
    }
}

/// Samples of all nodes and rounds together: more would not fit into memory, and not be done in a week.
const SAMPLES_MAX: usize = 20_000_000;
/// The largest number of anything that is counted.
const COUNT_MAX: usize = 1_000_000;

fn check(setup: &Setup) -> Result<(), SettingError> {
    let Setup { nodes, batch, watched, window, .. } = *setup;
    let rounds = setup.rounds as usize;
    let samples = nodes.saturating_mul(batch).saturating_mul(rounds.saturating_add(1));
    let countable = |count: usize| (1..=COUNT_MAX).contains(&count);
    let positive = |value: f64| value > 0.0 && value.is_finite();
    let rules = [
        ("nodes", nodes >= 2, "fairness needs at least 2 nodes".to_owned()),
        ("nodes", nodes <= COUNT_MAX, format!("at most {COUNT_MAX} nodes")),
        ("rounds", countable(rounds), format!("between 1 and {COUNT_MAX} rounds")),
        ("batch", countable(batch), format!("between 1 and {COUNT_MAX} samples")),
        (
            "rounds",
            samples <= SAMPLES_MAX,
            format!(
                "{nodes} nodes with batches of {batch} may see {SAMPLES_MAX} samples in all, not {samples}"
            ),
        ),
        ("k", (1..=nodes).contains(&setup.k), format!("between 1 and the {nodes} nodes")),
        ("watched", (1..=nodes).contains(&watched), format!("between 1 and the {nodes} nodes")),
        ("window", window > watched, format!("above the {watched} watched nodes")),
        ("window", countable(window), format!("between 1 and {COUNT_MAX} rounds")),
        ("learning-rate", positive(setup.learning_rate), "a number above 0".into()),
        ("utility", !setup.utility.is_scored(), "one of updates alone; there are no validation data".into()),
        ("temperature", positive(setup.temperature), "a number above 0".into()),
        ("strictness", setup.strictness > 0.0 && setup.strictness < 1.0, "between 0 and 1".into()),
        ("level", (0.0..=1.0).contains(&setup.level), "between 0 and 1".into()),
    ];
    match rules.into_iter().find(|(_, holds, _)| !holds) {
        None => Ok(()),
        Some((flag, _, wish)) => {
            let value = setup.flags().into_iter().find(|(name, _)| *name == flag);
            Err(SettingError { flag, value: value.map_or(String::new(), |(_, value)| value), wish })
        }
    }
}
