//! The files of a state folder, and the little that is done to them.

use std::fmt::Debug;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use evenhand_program::atomic;

/// What a node needs of a disk: small enough to be broken on purpose in tests.
pub(super) trait Disk: Debug + Send + Sync {
    /// The whole file; none if it does not exist.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// Replaces the file: whatever happens, it is the old one or the new one.
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Adds to the end of the file; with `sync` it is on the device when this returns, else at least with the system.
    fn append(&self, name: &str, bytes: &[u8], sync: bool) -> io::Result<()>;

    /// Leaves the first `length` bytes of the file; makes it if need be.
    fn cut(&self, name: &str, length: u64) -> io::Result<()>;

    /// Gives the file another name, so that a person can look at it.
    fn put_aside(&self, name: &str) -> io::Result<()>;
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
        atomic::replace(&self.0.join(name), bytes)
    }

    fn append(&self, name: &str, bytes: &[u8], sync: bool) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(self.0.join(name))?;
        file.write_all(bytes)?;
        if sync { file.sync_data() } else { Ok(()) }
    }

    fn cut(&self, name: &str, length: u64) -> io::Result<()> {
        OpenOptions::new().create(true).append(true).open(self.0.join(name))?.set_len(length)
    }

    fn put_aside(&self, name: &str) -> io::Result<()> {
        let path = self.0.join(name);
        fs::rename(&path, path.with_extension("unreadable"))
    }
}
