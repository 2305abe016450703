//! Data sets that cannot be read.

use std::fmt;
use std::io;
use std::path::PathBuf;

use evenhand_program::exit::Exit;

use super::{Dataset, FOLDER_VARIABLE};

/// A data set that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// No folder was named.
    #[error(
        "{} needs files: name their folder with --data DIR or {FOLDER_VARIABLE}, or take --dataset synthetic; it is published at {}",
        dataset.name(),
        dataset.home()
    )]
    NoFolder {
        /// The data set.
        dataset: Dataset,
    },
    /// The folder does not hold the data set.
    #[error(
        "{} is not in {}: no file {wanted} there nor in a folder {places}; get it from {}",
        dataset.name(),
        folder.display(),
        dataset.home()
    )]
    Missing {
        /// The data set.
        dataset: Dataset,
        /// The folder that was searched.
        folder: PathBuf,
        /// The file that would be it.
        wanted: &'static str,
        /// Folders inside, which were searched too.
        places: String,
    },
    /// The folder of all data sets cannot be listed.
    #[error(
        "the data folder {} cannot be read: {cause}; name another with --data DIR or {FOLDER_VARIABLE}",
        path.display()
    )]
    Folder {
        /// The path.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// Something else has the name of a file.
    #[error(
        "{}: here is {found}, where a file of {} should be; remove it, and get the file from {}",
        path.display(),
        dataset.name(),
        dataset.home()
    )]
    NoFile {
        /// The data set.
        dataset: Dataset,
        /// Where.
        path: PathBuf,
        /// The found value.
        found: &'static str,
    },
    /// A file cannot be read, or a folder not listed.
    #[error(
        "{}: cannot be read ({cause}); mend that, or get {} again from {}",
        path.display(),
        dataset.name(),
        dataset.home()
    )]
    Read {
        /// The data set.
        dataset: Dataset,
        /// The path.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// A file is not in its format.
    #[error("{}, {position}: {cause}; get the file again from {}", path.display(), dataset.home())]
    Broken {
        /// The data set.
        dataset: Dataset,
        /// The path.
        path: PathBuf,
        /// The position in the file.
        position: FilePosition,
        /// The departure.
        cause: Box<FormatError>,
    },
    /// The files are sound and hold nothing to learn from.
    #[error(
        "{}{}: no samples for {}: {reason}; get all of it from {}",
        path.display(),
        position.map(|position| format!(", {position}")).unwrap_or_default(),
        dataset.name(),
        dataset.home()
    )]
    Empty {
        /// The data set.
        dataset: Dataset,
        /// The file, or the folder.
        path: PathBuf,
        /// The position, if there is one to look at.
        position: Option<FilePosition>,
        /// The reason.
        reason: String,
    },
}

impl DataError {
    /// The exit code of a program that ends by this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::NoFolder { .. } => Exit::Usage,
            _ => Exit::Data,
        }
    }
}

/// A position in an unpacked file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilePosition {
    /// Bytes before it.
    Byte(u64),
    /// Counted from 1.
    Line(u64),
}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilePosition::Byte(offset) => write!(f, "byte {offset}"),
            FilePosition::Line(line) => write!(f, "line {line}"),
        }
    }
}

/// A departure of a file from its format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// It begins otherwise.
    #[error("{expected} begins with {wanted}, here is {found}")]
    Magic {
        /// The format.
        expected: &'static str,
        /// Its first bytes.
        wanted: String,
        /// The found bytes.
        found: String,
    },
    /// It ends early, or goes on.
    #[error("{wanted} bytes should follow, there are {found}")]
    Length {
        /// By the file's header.
        wanted: u64,
        /// The found value.
        found: u64,
    },
    /// It is packed, and does not unpack.
    #[error("cannot be unpacked ({0})")]
    Packing(String),
    /// Larger than any file of this kind.
    #[error("goes on beyond what any such file holds")]
    Bomb,
    /// Its samples are of another shape.
    #[error("{what} of shape {found:?}, expected {wanted}")]
    Shape {
        /// The array.
        what: &'static str,
        /// The found value.
        found: Vec<usize>,
        /// The expected one.
        wanted: &'static str,
    },
    /// Two parts disagree.
    #[error("{labels} labels for {samples} samples")]
    Counts {
        /// Labels.
        labels: usize,
        /// Samples.
        samples: usize,
    },
    /// A class that does not exist.
    #[error("label {found}, but classes are {first} to {last}")]
    Label {
        /// The found value.
        found: String,
        /// The lowest.
        first: u32,
        /// The highest.
        last: u32,
    },
    /// Text where a number should be.
    #[error("{found:?} in column {column} is no finite number")]
    Number {
        /// The found value.
        found: String,
        /// Counted from 1.
        column: usize,
    },
    /// A number that no such meter shows.
    #[error("{found} in column {column} is no {quantity}: those lie between {low} and {high}")]
    Implausible {
        /// The found value.
        found: String,
        /// Counted from 1.
        column: usize,
        /// The quantity.
        quantity: &'static str,
        /// The lowest that is believed.
        low: String,
        /// The highest.
        high: String,
    },
    /// A time outside of all recordings.
    #[error("{found:?} is no time of a recording: those lie between 1970 and 2099")]
    Era {
        /// The found value.
        found: String,
    },
    /// A reading without an owner.
    #[error("nothing in column {column}, which says whose reading this is")]
    Nobody {
        /// Counted from 1.
        column: usize,
    },
    /// Two readings of one meter at one time.
    #[error("{owner} has {found} at {time}, but {other} says {before}")]
    Contradiction {
        /// The owner.
        owner: String,
        /// When.
        time: String,
        /// The found value.
        found: String,
        /// The other file and line.
        other: String,
        /// The found value.
        before: String,
    },
    /// Text where a time should be.
    #[error("{found:?} is no time such as 2015-01-01T00:00:00Z")]
    Time {
        /// The found value.
        found: String,
    },
    /// Rows of different length, or too few of them.
    #[error("{found} {what}, expected {wanted}")]
    Table {
        /// Rows or numbers.
        what: &'static str,
        /// The found number.
        found: usize,
        /// The expected number.
        wanted: usize,
    },
    /// A column or a member that is not there.
    #[error("no {wanted}; there are {found}")]
    Absent {
        /// The searched name.
        wanted: String,
        /// The names that are there.
        found: String,
    },
    /// A .npy member of a format that does not exist yet.
    #[error("an .npy array of version {0}, expected 1 to 3")]
    Version(u8),
    /// A .npy member with other values than bytes.
    #[error("values of type {0}, expected bytes ('|u1')")]
    Type(String),
    /// A .npy member whose first index runs fastest.
    #[error(
        "an array column by column ('fortran_order': True), expected row by row ('fortran_order': False)"
    )]
    Order,
    /// A .npy header that this program does not read.
    #[error("the head of the array is not understood: {0}")]
    Head(String),
    /// Text that is no table.
    #[error("{0}")]
    Csv(String),
}
