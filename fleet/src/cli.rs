//! The command line.

use std::io;

use evenhand_protocol::exit::Exit;

use crate::FleetError;
use crate::bench::Bench;
use crate::calc::Calc;

/// A simulated fleet of meters that learns together, fairly; and the tools to check it
#[derive(Debug, clap::Parser)]
#[command(name = "evenhand-fleet", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check a number: JSON on stdin, JSON on stdout
    #[command(subcommand)]
    Calc(Calc),
    /// Measure
    #[command(subcommand)]
    Bench(Bench),
}

impl Cli {
    /// Does what was asked.
    pub fn run(self) -> Result<Exit, FleetError> {
        match self.command {
            Command::Calc(calc) => calc.run(io::stdin().lock(), io::stdout().lock())?,
            Command::Bench(bench) => bench.run(io::stdout().lock())?,
        }
        Ok(Exit::Ok)
    }
}
