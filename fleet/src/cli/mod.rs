//! The command line: flags of all commands, their output and exit codes.

mod agent;
mod bench;
mod calc;
mod cheat;
mod compare;
mod data;
mod demo;
mod error;
mod experiment;
mod find_rate;
mod games;
mod leak;
mod paper;
mod play;
mod present;
mod report_file;
pub mod run_table;
mod signal;
mod trial_args;
mod worth;
mod year;

use std::io;
use std::path::PathBuf;

use evenhand_program::exit::Exit;
use serde::de::value::{Error as NameError, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};

use self::agent::AgentArgs;
use self::bench::BenchCommand;
use self::calc::CalcCommand;
use self::cheat::CheatArgs;
use self::compare::CompareArgs;
use self::data::DataArgs;
use self::demo::DemoArgs;
pub use self::error::FleetError;
use self::experiment::ExperimentCommand;
use self::games::GamesArgs;
use self::leak::LeakArgs;
use self::paper::PaperArgs;
use self::play::PlayArgs;
use self::worth::WorthArgs;
use self::year::YearArgs;
use crate::sim::process;

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  64   the command line is wrong, or its values contradict each other
  65   a question to a calculator is wrong, or a data set is broken or missing
  69   the broker cannot be reached, or refuses us
  70   a defect, a full disk, or a federation cannot go on
  130  ended by Ctrl-C, with what was reached so far";

/// A simulated fleet of meters that learns together, fairly; and tools to check it
///
/// Without a command, the demo is run: it takes the flags below.
#[derive(Debug, clap::Parser)]
#[command(name = "evenhand-fleet", version, args_conflicts_with_subcommands = true, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<FleetCommand>,
    #[command(flatten)]
    demo: DemoArgs,
}

#[derive(Debug, clap::Subcommand)]
enum FleetCommand {
    /// Meters of different data quality learn one model, and the better ones receive it more often
    #[command(after_help = EXIT_CODES)]
    Demo(DemoArgs),
    /// Check a number: JSON on stdin, JSON on stdout
    #[command(subcommand, after_help = EXIT_CODES)]
    Calc(CalcCommand),
    /// Run one node; `demo --processes` starts these
    #[command(hide = true)]
    Node(NodeArgs),
    /// Run strategies side by side on one data set, several trials each
    #[command(after_help = format!("{}\n\n{EXIT_CODES}", experiment::HELP))]
    Experiment(ExperimentCommand),
    /// Compare all strategies, over data sets and kinds of bad data
    #[command(after_help = format!("{}\n\n{EXIT_CODES}", compare::HELP))]
    Compare(CompareArgs),
    /// Repeat the paper: its tables and figures, ours beside the published ones
    #[command(after_help = format!("{}\n\n{EXIT_CODES}", paper::HELP))]
    Paper(PaperArgs),
    /// Let a year of real meters pass: forecasts alone, together, and naive ones
    #[command(after_help = format!("{}\n\n{EXIT_CODES}", year::HELP))]
    Year(Box<YearArgs>),
    /// Attack the mechanism through the production code: what each attack gains over honest work
    #[command(after_help = format!("{}\n\n{EXIT_CODES}", cheat::HELP))]
    Cheat(CheatArgs),
    /// Attack updates: how many of the readings behind them somebody who sees them can compute
    #[command(after_help = format!("{}\n\n{EXIT_CODES}", leak::HELP))]
    Leak(Box<LeakArgs>),
    /// Measure what nodes' data are worth: Shapley values by retraining on coalitions
    #[command(after_help = format!("{}\n\n{EXIT_CODES}", worth::HELP))]
    Worth(WorthArgs),
    /// Let agents learn a game together: reinforcement learning, federated
    #[command(after_help = format!("{}\n\n{EXIT_CODES}", games::HELP))]
    Games(Box<GamesArgs>),
    /// Let a lone agent learn a game, and print its learning curve
    #[command(after_help = format!("{}\n\n{EXIT_CODES}", agent::HELP))]
    Agent(AgentArgs),
    /// Watch five agents learn a game together in the terminal
    #[command(after_help = format!("{}\n\n{EXIT_CODES}", play::HELP))]
    Play(PlayArgs),
    /// Measure
    #[command(subcommand, after_help = EXIT_CODES)]
    Bench(BenchCommand),
    /// List the data sets: what is here, what is missing, and where it is published
    #[command(after_help = data::HELP)]
    Data(DataArgs),
}

impl Cli {
    /// Runs the command.
    pub fn run(self) -> Result<Exit, FleetError> {
        match self.command {
            None => demo::run(&self.demo),
            Some(FleetCommand::Demo(demo)) => demo::run(&demo),
            Some(FleetCommand::Calc(calc)) => {
                calc.run(io::stdin().lock(), io::stdout().lock())?;
                Ok(Exit::Ok)
            }
            Some(FleetCommand::Node(node)) => {
                process::main(&node.config)?;
                Ok(Exit::Ok)
            }
            Some(FleetCommand::Experiment(experiment)) => experiment::run(&experiment),
            Some(FleetCommand::Year(year)) => year::run(&year),
            Some(FleetCommand::Cheat(cheat)) => cheat::run(&cheat),
            Some(FleetCommand::Leak(leak)) => leak::run(&leak),
            Some(FleetCommand::Compare(compare)) => compare::run(&compare),
            Some(FleetCommand::Paper(paper)) => paper::run(&paper),
            Some(FleetCommand::Worth(worth)) => worth::run(&worth),
            Some(FleetCommand::Games(games)) => games::run(&games),
            Some(FleetCommand::Agent(agent)) => agent::run(&agent),
            Some(FleetCommand::Play(play)) => play::run(&play),
            Some(FleetCommand::Bench(bench)) => {
                bench.run(io::stdout().lock())?;
                Ok(Exit::Ok)
            }
            Some(FleetCommand::Data(args)) => {
                data::run(args, io::stdout().lock()).map_err(FleetError::Output)
            }
        }
    }
}

/// The configuration of one node
#[derive(Debug, clap::Args)]
struct NodeArgs {
    /// The configuration file
    #[arg(long)]
    config: PathBuf,
}

/// The value that has this name in a configuration.
fn by_name<T: DeserializeOwned>(name: &str) -> Result<T, NameError> {
    let name: StrDeserializer<'_, NameError> = name.into_deserializer();
    T::deserialize(name)
}
