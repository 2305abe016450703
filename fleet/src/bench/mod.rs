//! Benchmarks that anyone can repeat.

pub mod shapley;

use std::io::Write;

use evenhand_protocol::exit::Exit;

/// What to measure.
#[derive(Debug, clap::Subcommand)]
pub enum Bench {
    /// Time of one round's contributions
    Shapley(shapley::ShapleyArgs),
}

impl Bench {
    /// Measures, and writes the figures to `stdout`.
    pub fn run(&self, stdout: impl Write) -> Result<(), BenchError> {
        match self {
            Bench::Shapley(args) => shapley::run(args, stdout),
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
