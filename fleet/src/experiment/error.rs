//! Experiments that cannot go on.

use std::io;

use evenhand_program::exit::Exit;

use super::games::GameRecordError;
use super::record::RecordError;
use super::setup_check::SettingError;
use super::worth::WorthError;
use super::year::YearError;
use crate::data::DataError;
use crate::scenario::ScenarioError;
use crate::sim::SimulationError;

/// An experiment that cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// A setting is outside its range.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A data set cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The data set and the scenario do not fit each other.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A trial cannot start or go on.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// Records of trials cannot be used, or stored.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Records of trials with agents cannot be used, or stored.
    #[error(transparent)]
    GameRecord(#[from] GameRecordError),
    /// The worth of nodes cannot be measured or stored.
    #[error(transparent)]
    Worth(#[from] WorthError),
    /// A year cannot be run.
    #[error(transparent)]
    Year(#[from] YearError),
    /// The system gives no threads.
    #[error("cannot start: {0}")]
    Threads(#[source] io::Error),
}

impl ExperimentError {
    /// The exit code of a program that ends by this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Setting(_) | Self::Scenario(_) => Exit::Usage,
            Self::Data(error) => error.exit(),
            Self::Simulation(error) => error.exit(),
            Self::Record(error) => error.exit(),
            Self::GameRecord(error) => error.exit(),
            Self::Worth(error) => error.exit(),
            Self::Year(error) => error.exit(),
            Self::Threads(_) => Exit::Software,
        }
    }
}
