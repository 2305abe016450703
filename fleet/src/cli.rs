//! The command line.

use std::io;

use evenhand_protocol::exit::Exit;
use serde::de::value::{Error as NameError, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};

use crate::FleetError;
use crate::bench::Bench;
use crate::calc::Calc;
use crate::data::{self, DataArgs};
use crate::demo::{self, DemoArgs};
use crate::experiment::{self, ExperimentArgs};
use crate::paper::{self, PaperArgs};
use crate::transport::process::{self, NodeArgs};

const EXIT_CODES: &str = "\
Exit codes:
  0    it did what was asked
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
    command: Option<Command>,
    #[command(flatten)]
    demo: DemoArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Meters of different data quality learn one model, and the better ones receive it more often
    #[command(after_help = EXIT_CODES)]
    Demo(DemoArgs),
    /// Check a number: JSON on stdin, JSON on stdout
    #[command(subcommand, after_help = EXIT_CODES)]
    Calc(Calc),
    /// Be one node; `demo --processes` starts these
    #[command(hide = true)]
    Node(NodeArgs),
    /// Run strategies side by side on one data set, several trials each
    #[command(after_help = format!("{}\n\n{EXIT_CODES}", experiment::HELP))]
    Experiment(ExperimentArgs),
    /// Run one of the paper's tables, or all, and print ours beside the published figures
    #[command(after_help = format!("{}\n\n{EXIT_CODES}", paper::HELP))]
    Paper(PaperArgs),
    /// Measure
    #[command(subcommand, after_help = EXIT_CODES)]
    Bench(Bench),
    /// List the data sets: what is here, what is missing, and where it is published
    #[command(after_help = data::HELP)]
    Data(DataArgs),
}

impl Cli {
    /// Does what was asked.
    pub fn run(self) -> Result<Exit, FleetError> {
        match self.command {
            None => demo::run(&self.demo),
            Some(Command::Demo(demo)) => demo::run(&demo),
            Some(Command::Calc(calc)) => {
                calc.run(io::stdin().lock(), io::stdout().lock())?;
                Ok(Exit::Ok)
            }
            Some(Command::Node(node)) => {
                process::main(&node)?;
                Ok(Exit::Ok)
            }
            Some(Command::Experiment(experiment)) => experiment::run(&experiment),
            Some(Command::Paper(paper)) => paper::run(&paper),
            Some(Command::Bench(bench)) => {
                bench.run(io::stdout().lock())?;
                Ok(Exit::Ok)
            }
            Some(Command::Data(args)) => data::run(args, io::stdout().lock()).map_err(FleetError::Output),
        }
    }
}

/// The value that a configuration would give this name.
pub(crate) fn by_name<T: DeserializeOwned>(name: &str) -> Result<T, NameError> {
    let name: StrDeserializer<'_, NameError> = name.into_deserializer();
    T::deserialize(name)
}
