//! File operations on a state folder. Its files hold readings and the model: they are their owner's alone.

use std::fmt::Debug;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use evenhand_program::atomic;

/// File operations of a state folder; tests inject faults by another implementation.
pub(super) trait Disk: Debug + Send + Sync {
    /// The whole file; none if it does not exist.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// Replaces the file atomically.
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Appends to the file; with `sync` the data are on the device when this returns, else in the system's cache.
    fn append(&self, name: &str, bytes: &[u8], sync: bool) -> io::Result<()>;

    /// Truncates the file to `length` bytes; creates it if absent.
    fn truncate(&self, name: &str, length: u64) -> io::Result<()>;

    /// Renames the file for later inspection.
    fn set_aside(&self, name: &str) -> io::Result<()>;
}

/// A folder of the file system.
#[derive(Debug)]
pub(super) struct Folder(pub(super) PathBuf);

impl Disk for Folder {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.0.join(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        atomic::replace_private(&self.0.join(name), bytes)
    }

    fn append(&self, name: &str, bytes: &[u8], sync: bool) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(self.0.join(name))?;
        file.write_all(bytes)?;
        if sync { file.sync_data() } else { Ok(()) }
    }

    fn truncate(&self, name: &str, length: u64) -> io::Result<()> {
        OpenOptions::new().create(true).append(true).mode(0o600).open(self.0.join(name))?.set_len(length)
    }

    fn set_aside(&self, name: &str) -> io::Result<()> {
        let path = self.0.join(name);
        fs::rename(&path, path.with_extension("unreadable"))
    }
}
