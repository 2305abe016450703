//! Benchmarks that anyone can repeat.

pub mod churn;
mod print;
pub mod round;
pub mod scale;
pub mod shapley;
mod state;

use std::io::Write;

use evenhand_protocol::exit::Exit;

use crate::FleetError;

/// What to measure.
#[derive(Debug, clap::Subcommand)]
pub enum Bench {
    /// Time of one round's contributions
    Shapley(shapley::ShapleyArgs),
    /// Time of a round against the number of nodes
    Scale(scale::ScaleArgs),
    /// What the coordinator needs from a round's last update to the next tasks, with durability and without
    Round(round::RoundArgs),
    /// Many nodes on one broker, a part of which dies and returns in every round
    Churn(churn::ChurnArgs),
}

impl Bench {
    /// Measures, and writes the figures to `stdout`.
    pub fn run(&self, stdout: impl Write) -> Result<(), FleetError> {
        match self {
            Bench::Shapley(args) => Ok(shapley::run(args, stdout)?),
            Bench::Scale(args) => scale::run(args, stdout),
            Bench::Round(args) => round::run(args, stdout),
            Bench::Churn(args) => churn::run(args, stdout),
        }
    }
}

/// Why a benchmark could not run.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The wish cannot be measured.
    #[error("{0}")]
    Refused(String),
    /// Writing the figures failed.
    #[error("cannot write the figures: {0}")]
    Io(#[from] std::io::Error),
}

impl BenchError {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            BenchError::Refused(_) => Exit::Usage,
            BenchError::Io(_) => Exit::Software,
        }
    }
}
