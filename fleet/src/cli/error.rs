//! Commands that failed.

use std::io;
use std::path::PathBuf;

use evenhand_program::exit::Exit;
use evenhand_program::stdout;

use super::bench::BenchError;
use super::calc::CalcError;
use crate::data::DataError;
use crate::experiment::ExperimentError;
use crate::experiment::setup_check::SettingError;
use crate::experiment::year::YearError;
use crate::leak::LeakError;
use crate::sim::SimulationError;
use crate::sim::demo::DemoError;

/// A command that failed.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// Settings of the demo contradict each other.
    #[error(transparent)]
    Demo(#[from] DemoError),
    /// The report cannot be written.
    #[error("cannot write the report {}: {cause}; choose another --report PATH", path.display())]
    Report {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The state of an agent cannot be read or written.
    #[error("{}: {cause}; choose another --state PATH", path.display())]
    AgentState {
        /// Its path.
        path: PathBuf,
        /// The cause.
        cause: String,
    },
    /// Standard output cannot be written.
    #[error("cannot write to stdout: {0}")]
    Output(#[source] io::Error),
    /// A simulation cannot start or go on.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// An experiment cannot start or go on.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// A calculator refused its question.
    #[error(transparent)]
    Calc(#[from] CalcError),
    /// An attack cannot be run.
    #[error(transparent)]
    Leak(#[from] LeakError),
    /// A benchmark could not run.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// Everything that was asked of a table is left out.
    #[error(
        "nothing is left of the table {table}; ask for other data sets or strategies, or for another table"
    )]
    NothingLeft {
        /// The table.
        table: String,
    },
}

impl From<SettingError> for FleetError {
    fn from(error: SettingError) -> Self {
        ExperimentError::from(error).into()
    }
}

impl From<YearError> for FleetError {
    fn from(error: YearError) -> Self {
        ExperimentError::from(error).into()
    }
}

impl From<DataError> for FleetError {
    fn from(error: DataError) -> Self {
        ExperimentError::from(error).into()
    }
}

impl FleetError {
    /// True if it failed only because the reader of its output is gone.
    pub fn is_reader_gone(&self) -> bool {
        matches!(self, Self::Output(cause) | Self::Calc(CalcError::Io(cause)) if stdout::is_closed_pipe(cause))
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Demo(_) | Self::AgentState { .. } | Self::Report { .. } | Self::NothingLeft { .. } => {
                Exit::Usage
            }
            Self::Simulation(error) => error.exit(),
            Self::Experiment(error) => error.exit(),
            Self::Calc(error) => error.exit(),
            Self::Leak(LeakError::Model(_)) => Exit::Software,
            Self::Leak(_) => Exit::Usage,
            Self::Bench(error) => error.exit(),
            Self::Output(_) => Exit::Software,
        }
    }
}
