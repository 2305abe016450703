//! `evenhand-fleet bench`.

mod churn;
mod print;
mod round;
mod scale;
mod shapley;
mod state;

use std::io::Write;

use evenhand_coordinator::store::StoreError;
use evenhand_program::exit::Exit;

use super::FleetError;

/// Benchmarks.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum BenchCommand {
    /// Time of one round's contributions
    Shapley(shapley::ShapleyArgs),
    /// Time of a round against the number of nodes
    Scale(scale::ScaleArgs),
    /// Time of the coordinator from a round's last update to the next tasks, with durability and without
    Round(round::RoundArgs),
    /// Many nodes on one broker, some of which disconnect and return in every round
    Churn(churn::ChurnArgs),
}

impl BenchCommand {
    /// Measures, and writes the figures to `stdout`.
    pub(crate) fn run(&self, stdout: impl Write) -> Result<(), FleetError> {
        match self {
            Self::Shapley(args) => Ok(shapley::run(args, stdout)?),
            Self::Scale(args) => scale::run(args, stdout),
            Self::Round(args) => round::run(args, stdout),
            Self::Churn(args) => churn::run(args, stdout),
        }
    }
}

/// A benchmark that could not run.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The arguments cannot be measured.
    #[error("{0}")]
    Refused(String),
    /// Writing the figures failed.
    #[error("cannot write the figures: {0}")]
    Io(#[from] std::io::Error),
    /// The state cannot be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl BenchError {
    pub(super) fn exit(&self) -> Exit {
        match self {
            BenchError::Refused(_) => Exit::Usage,
            BenchError::Io(_) => Exit::Software,
            BenchError::Store(error) => error.exit(),
        }
    }
}
