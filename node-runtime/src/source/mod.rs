//! Where readings come from: one trait, one file for each kind.

mod clocked;
pub mod csv;
pub mod household;
mod lines;
mod tail;
pub mod time;

use std::path::PathBuf;
use std::time::Duration;

pub use clocked::Clocked;

use crate::reading::Intake;

/// How long a source waits for its next reading before it says that there is none yet.
const PATIENCE: Duration = Duration::from_secs(1);

/// Something that hands readings over, oldest first.
///
/// A source is plain blocking code: a live one runs on a thread of its own, a simulated or recorded one can also be read
/// in line, round by round.
pub trait Source: Send {
    /// The next readings, at most `count`.
    ///
    /// Waits for the first of them for about a second, so that a node that ends need not wait longer; an empty answer
    /// means that there are none yet. After an error the source is opened anew.
    fn read(&mut self, count: usize) -> Result<Intake, SourceError>;

    /// How much came that was no reading.
    fn malformed(&self) -> u64 {
        0
    }
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn read(&mut self, count: usize) -> Result<Intake, SourceError> {
        (**self).read(count)
    }

    fn malformed(&self) -> u64 {
        (**self).malformed()
    }
}

/// Why a source has nothing more to say.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A recorded source is used up; this is no failure.
    #[error("the source is at its end")]
    Ended,
    /// A file or device does not open or read.
    #[error("{path}: {cause}")]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// The system gives the source no thread.
    #[error("cannot start a thread for the source: {0}")]
    Thread(std::io::Error),
    /// A column that the configuration names does not exist.
    #[error("{path} has no column {column:?}; its columns are {columns}")]
    Column {
        /// Which file.
        path: PathBuf,
        /// The column that was wanted.
        column: String,
        /// Those that are there.
        columns: String,
    },
}
