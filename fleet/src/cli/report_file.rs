//! The file of a report: created before a long run, put in place after it.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::FleetError;

/// A report that is still to be written.
pub(super) struct ReportFile {
    path: PathBuf,
    target: ReportTarget,
}

enum ReportTarget {
    /// A file, written whole or not at all: a temporary one replaces the other, to which links are followed.
    File(NamedTempFile, PathBuf),
    /// A device or a pipe, which nothing may replace.
    Stream,
}

impl ReportFile {
    pub(super) fn create(path: &Path) -> Result<Self, FleetError> {
        let target =
            ReportTarget::at(path).map_err(|cause| FleetError::Report { path: path.to_owned(), cause })?;
        Ok(Self { path: path.to_owned(), target })
    }

    /// Writes the page; returns its path.
    pub(super) fn finish(self, page: &str) -> Result<PathBuf, FleetError> {
        let Self { path, target } = self;
        match target.write(&path, page) {
            Ok(()) => Ok(path),
            Err(cause) => Err(FleetError::Report { path, cause }),
        }
    }
}

impl ReportTarget {
    fn at(path: &Path) -> io::Result<Self> {
        let target = match fs::metadata(path) {
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(there) if there.is_file() => fs::canonicalize(path)?,
            Ok(_) => return Ok(Self::Stream),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => path.to_owned(),
            Err(error) => return Err(error),
        };
        let folder = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        // As readable as the user's other files.
        let file = tempfile::Builder::new()
            .prefix(".evenhand-report-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)?;
        Ok(Self::File(file, target))
    }

    fn write(self, path: &Path, page: &str) -> io::Result<()> {
        match self {
            Self::File(mut file, target) => {
                file.write_all(page.as_bytes())?;
                file.persist(target).map(drop).map_err(|error| error.error)
            }
            Self::Stream => OpenOptions::new().write(true).open(path)?.write_all(page.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileTypeExt, symlink};

    fn put(path: &Path, page: &str) -> Result<PathBuf, FleetError> {
        ReportFile::create(path)?.finish(page)
    }

    #[test]
    fn devices_are_written_to_and_never_replaced() {
        put(Path::new("/dev/null"), "page").expect("takes everything");
        let there = fs::symlink_metadata("/dev/null").expect("it is there");
        assert!(there.file_type().is_char_device());
    }

    #[test]
    fn links_are_followed_and_stay_links() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, link) = (folder.path().join("file.html"), folder.path().join("link.html"));
        fs::write(&file, "old").expect("written");
        symlink(&file, &link).expect("a link");
        put(&link, "new").expect("written");
        assert_eq!(fs::read_to_string(&file).expect("readable"), "new");
        assert!(link.is_symlink());
    }

    #[test]
    fn a_path_that_cannot_be_written_is_refused_before_the_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let (nowhere, long) = (folder.path().join("link.html"), folder.path().join("x".repeat(300)));
        symlink(folder.path().join("gone"), &nowhere).expect("a link");
        for path in [folder.path(), &nowhere, &long] {
            assert!(ReportFile::create(path).is_err(), "{}", path.display());
        }
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1, "only the link");
    }
}
