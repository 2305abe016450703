//! Worths that cannot be measured or stored.

use std::io;
use std::path::PathBuf;

use evenhand_program::exit::Exit;

use super::truth::FORMAT;
use crate::data::Dataset;

/// A worth that cannot be measured, stored or read.
#[derive(Debug, thiserror::Error)]
pub enum WorthError {
    /// The file cannot be written.
    #[error("cannot store worths in {}: {cause}; choose another --out DIR", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The file cannot be read.
    #[error("cannot read {}: {cause}; remove it, or choose another folder", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The file is not ours.
    #[error("{} is no stored worth ({cause}); remove it, or choose another folder", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The parser's error.
        cause: serde_json::Error,
    },
    /// The file is of another format.
    #[error("{} is a worth of format {found}, not {}; remove it, or choose another folder", path.display(), FORMAT)]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u16,
    },
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
            Self::Unwritable { .. } => Exit::Software,
            Self::Unreadable { .. }
            | Self::Malformed { .. }
            | Self::OtherFormat { .. }
            | Self::NothingHeldOut { .. } => Exit::Usage,
        }
    }
}
