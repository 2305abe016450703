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
    /// The process exit code that tells the shell what kind of failure this is.
    pub fn exit(&self) -> u8 {
        match self {
            FleetError::Calc(error) => error.exit(),
            FleetError::Bench(error) => error.exit(),
        }
    }
}
