//! Files that are replaced as a whole: a reader, a crash or a full disk sees the old content or the new, never a part.
//!
//! The content goes to a temporary file beside the target, is written to the device, and takes the target's name; then the
//! folder is written to the device. Links are followed and stay links. Devices and pipes are written to, never replaced.
//! Concurrent writers do not disturb each other: the last one wins.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::private;

const PREFIX: &str = ".evenhand-";
const SUFFIX: &str = ".new";

/// Replaces the file at `path`, and creates its folder if necessary.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    AtomicFile::new(path).create_folder().write(bytes)
}

/// Replaces the file at `path` for its owner alone, and creates its folder if necessary.
pub fn replace_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    AtomicFile::new(path).owner_only().create_folder().write(bytes)
}

/// Removes the temporary files that killed processes left in `folder`. Only for folders that no other process writes to.
pub fn remove_leftovers(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX)) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// A file to be replaced, and the manner.
#[derive(Debug, Clone)]
pub struct AtomicFile {
    path: PathBuf,
    owner_only: bool,
    create_folder: bool,
    sync: bool,
}

impl AtomicFile {
    /// The file at `path`, as readable as the user's other files, in a folder that exists.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), owner_only: false, create_folder: false, sync: true }
    }

    /// Readable and writable by its owner alone.
    pub fn owner_only(self) -> Self {
        Self { owner_only: true, ..self }
    }

    /// Its folder is created if necessary, for the file's readers.
    pub fn create_folder(self) -> Self {
        Self { create_folder: true, ..self }
    }

    /// Not written to the device: for content that may be lost in a power failure, and is written so often that it would wear
    /// out a memory card.
    pub fn without_sync(self) -> Self {
        Self { sync: false, ..self }
    }

    /// Replaces the content.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        self.prepare()?.commit(bytes)
    }

    /// Everything that can fail before the content is known: a program that runs for hours checks first that it can write its
    /// result.
    pub fn prepare(&self) -> io::Result<PendingFile> {
        match self.target()? {
            Some(target) => Ok(PendingFile(PendingWrite::Replacement(self.temporary_for(target)?))),
            None => Ok(PendingFile(PendingWrite::Stream(self.path.clone()))),
        }
    }

    /// An empty temporary file beside the target, for libraries that open files by their name.
    pub fn temporary(&self) -> io::Result<TemporaryFile> {
        self.temporary_for(self.path.clone())
    }

    /// The file to be replaced, links followed; none for a device or a pipe.
    fn target(&self) -> io::Result<Option<PathBuf>> {
        let path = &self.path;
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(metadata) if metadata.is_file() => fs::canonicalize(path).map(Some),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
                Ok(Some(path.clone()))
            }
            Err(error) => Err(error),
        }
    }

    fn temporary_for(&self, target: PathBuf) -> io::Result<TemporaryFile> {
        let folder = folder_of(&target);
        match (self.create_folder, self.owner_only) {
            (true, true) => private::create_folder(folder)?,
            (true, false) => fs::create_dir_all(folder)?,
            (false, _) => {}
        }
        let mode = if self.owner_only { 0o600 } else { 0o666 };
        let file = tempfile::Builder::new()
            .prefix(PREFIX)
            .suffix(SUFFIX)
            .permissions(Permissions::from_mode(mode))
            .tempfile_in(folder)?;
        Ok(TemporaryFile { file, target, sync: self.sync })
    }
}

/// A replacement whose content is still to come. Dropped, it leaves everything as it was.
#[derive(Debug)]
pub struct PendingFile(PendingWrite);

#[derive(Debug)]
enum PendingWrite {
    Replacement(TemporaryFile),
    Stream(PathBuf),
}

impl PendingFile {
    /// Puts the content in place.
    pub fn commit(self, bytes: &[u8]) -> io::Result<()> {
        match self.0 {
            PendingWrite::Replacement(mut temporary) => {
                temporary.file.write_all(bytes)?;
                temporary.persist()
            }
            PendingWrite::Stream(path) => OpenOptions::new().write(true).open(path)?.write_all(bytes),
        }
    }
}

/// A temporary file beside its target; removed when dropped.
#[derive(Debug)]
pub struct TemporaryFile {
    file: NamedTempFile,
    target: PathBuf,
    sync: bool,
}

impl TemporaryFile {
    /// Its name.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Replaces the target, or creates it.
    pub fn persist(self) -> io::Result<()> {
        let Self { file, target, sync } = self;
        if sync {
            file.as_file().sync_all()?;
        }
        file.persist(&target).map_err(|error| error.error)?;
        if sync { sync_folder(&target) } else { Ok(()) }
    }

    /// Creates the target; false if there is one already, which is left as it is.
    pub fn persist_new(self) -> io::Result<bool> {
        let Self { file, target, sync } = self;
        if sync {
            file.as_file().sync_all()?;
        }
        match file.persist_noclobber(&target) {
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            persisted => drop(persisted.map_err(|error| error.error)?),
        }
        if sync {
            sync_folder(&target)?;
        }
        Ok(true)
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn sync_folder(file: &Path) -> io::Result<()> {
    File::open(folder_of(file))?.sync_all()
}

#[cfg(test)]
mod tests;
