use evenhand_protocol::exit::Exit;

use crate::bench::BenchError;
use crate::calc::CalcError;

/// Why a command of the fleet could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// A calculator could not answer.
    #[error(transparent)]
    Calc(#[from] CalcError),
    /// A benchmark could not run.
    #[error(transparent)]
    Bench(#[from] BenchError),
}

impl FleetError {
    /// What kind of failure this is, for the shell.
    pub fn exit(&self) -> Exit {
        match self {
            FleetError::Calc(error) => error.exit(),
            FleetError::Bench(error) => error.exit(),
        }
    }
}
