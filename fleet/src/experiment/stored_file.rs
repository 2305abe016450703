//! Files of results: read whole, written whole, refused where they are of another format.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use evenhand_program::atomic;
use evenhand_program::exit::Exit;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A kind of stored file.
#[derive(Debug, PartialEq, Eq)]
pub struct StoredKind {
    /// Its name in sentences.
    pub name: &'static str,
    /// The format that is read and written.
    pub format: u16,
    /// The flags that choose its folder.
    pub flags: &'static str,
}

/// The part of a file that is read first.
#[derive(Deserialize)]
struct StoredHeader {
    /// Absent from the first files.
    #[serde(default = "first_format")]
    format: u16,
}

fn first_format() -> u16 {
    1
}

/// A stored file that cannot be used, or cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum StoredFileError {
    /// The file cannot be written.
    #[error("cannot store results in {}: {cause}; choose another --out DIR", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The file cannot be read.
    #[error("cannot read {}: {cause}; choose another {}", path.display(), kind.flags)]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What it should be.
        kind: &'static StoredKind,
        /// The system's error.
        cause: io::Error,
    },
    /// The file is something else.
    #[error("{} is no {} ({cause}); remove it, or choose another {}", path.display(), kind.name, kind.flags)]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it should be.
        kind: &'static StoredKind,
        /// The parser's error.
        cause: serde_json::Error,
    },
    /// The file is of another format.
    #[error(
        "{} is a {} of format {found}, not {}: the same settings would yield other figures or names now; remove it, or \
         choose another {}",
        path.display(), kind.name, kind.format, kind.flags
    )]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// What it should be.
        kind: &'static StoredKind,
        /// Its format.
        found: u16,
    },
}

impl StoredFileError {
    /// The exit code of a program that ends by this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Unwritable { .. } => Exit::Software,
            Self::Unreadable { .. } | Self::Malformed { .. } | Self::OtherFormat { .. } => Exit::Usage,
        }
    }
}

impl StoredKind {
    /// The text of a file; none if there is no file.
    pub(super) fn text(&'static self, path: &Path) -> Result<Option<String>, StoredFileError> {
        match fs::read_to_string(path) {
            Ok(text) => Ok(Some(text)),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(StoredFileError::Unreadable { path: path.into(), kind: self, cause }),
        }
    }

    /// The object in a file of the present format; none if there is no file.
    pub(super) fn load<T: DeserializeOwned>(
        &'static self,
        path: &Path,
    ) -> Result<Option<T>, StoredFileError> {
        let Some(text) = self.text(path)? else { return Ok(None) };
        let malformed = |cause| self.malformed(path, cause);
        let StoredHeader { format } = serde_json::from_str(&text).map_err(malformed)?;
        if format != self.format {
            return Err(StoredFileError::OtherFormat { path: path.into(), kind: self, found: format });
        }
        serde_json::from_str(&text).map(Some).map_err(malformed)
    }

    /// The error of a file with something else in it.
    pub(super) fn malformed(&'static self, path: &Path, cause: serde_json::Error) -> StoredFileError {
        StoredFileError::Malformed { path: path.into(), kind: self, cause }
    }
}

/// Writes an object to a file, whole or not at all.
pub(super) fn save(path: &Path, object: &impl Serialize) -> Result<(), StoredFileError> {
    let write = || -> io::Result<()> {
        let mut text = serde_json::to_vec(object)?;
        text.push(b'\n');
        atomic::replace(path, &text)
    };
    write().map_err(|cause| StoredFileError::Unwritable { path: path.into(), cause })
}
