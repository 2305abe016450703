//! The file of a report: checked before a long run, written after it.

use std::path::{Path, PathBuf};

use evenhand_program::atomic::{AtomicFile, PendingFile};

use super::FleetError;

/// A report that is still to be written.
pub(super) struct ReportFile {
    path: PathBuf,
    file: PendingFile,
}

impl ReportFile {
    pub(super) fn create(path: &Path) -> Result<Self, FleetError> {
        match AtomicFile::new(path).prepare() {
            Ok(file) => Ok(Self { path: path.to_owned(), file }),
            Err(cause) => Err(FleetError::Report { path: path.to_owned(), cause }),
        }
    }

    /// Writes the page; returns its path.
    pub(super) fn finish(self, page: &str) -> Result<PathBuf, FleetError> {
        let Self { path, file } = self;
        match file.commit(page.as_bytes()) {
            Ok(()) => Ok(path),
            Err(cause) => Err(FleetError::Report { path, cause }),
        }
    }
}
