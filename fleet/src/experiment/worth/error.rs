//! Worths that cannot be measured or stored.

use evenhand_program::exit::Exit;

use crate::data::Dataset;
use crate::experiment::stored_file::StoredFileError;

/// A worth that cannot be measured, stored or read.
#[derive(Debug, thiserror::Error)]
pub enum WorthError {
    /// The file cannot be used, or not be written.
    #[error(transparent)]
    Stored(#[from] StoredFileError),
    /// Training uses every sample there is.
    #[error(
        "no sample of {} is left to judge models on: training sees all of them; lower --rounds, --batch or --nodes",
        dataset.name()
    )]
    NothingHeldOut {
        /// The data set.
        dataset: Dataset,
    },
}

impl WorthError {
    /// The exit code of a program that ends by this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Stored(error) => error.exit(),
            Self::NothingHeldOut { .. } => Exit::Usage,
        }
    }
}
