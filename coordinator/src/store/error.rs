//! Errors of a state folder.

use std::io::ErrorKind;
use std::path::PathBuf;

use evenhand_program::exit::Exit;

use evenhand_federation::{RestoreError, RuleError};

/// The cause of a store's failure.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The coordinator's keys cannot be copied.
    #[error("cannot copy the coordinator's keys: {0}")]
    Keys(String),
    /// Another process has it open.
    #[error(
        "another process uses the state in {folder}; stop it first, or give this one its own state.folder"
    )]
    InUse {
        /// The folder.
        folder: PathBuf,
    },
    /// There is no federation in it.
    #[error("there is no federation in {folder}; name the state.folder of one that was run")]
    Absent {
        /// The folder.
        folder: PathBuf,
    },
    /// A backup would replace another.
    #[error("{} holds a federation already, and a backup replaces none; name a new folder, such as {}-2", folder.display(), folder.display())]
    Occupied {
        /// The folder.
        folder: PathBuf,
    },
    /// An operation of the file system failed.
    #[error("cannot use {path}: {source}")]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A read or write failed.
    #[error("the disk failed: {0}")]
    Disk(std::io::Error),
    /// Written in another format.
    #[error("the state has format {found}, this program reads {known}; use the program that wrote it")]
    Format {
        /// The format of the state.
        found: u16,
        /// The format of this program.
        known: u16,
    },
    /// Not as it was written.
    #[error("the state is damaged: {0}; restore the folder from a backup")]
    Damaged(String),
    /// The federation cannot be restored.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// The configuration is for another federation.
    #[error(transparent)]
    Rules(#[from] RuleError),
}

impl StoreError {
    /// The exit code of a program that fails with it.
    pub fn exit(&self) -> Exit {
        match self {
            Self::InUse { .. } => Exit::Busy,
            Self::Rules(_) | Self::Restore(RestoreError::Onnx) => Exit::Config,
            Self::Absent { .. }
            | Self::Occupied { .. }
            | Self::Io { .. }
            | Self::Disk(_)
            | Self::Format { .. }
            | Self::Damaged(_)
            | Self::Keys(_)
            | Self::Restore(_) => Exit::Data,
        }
    }
}

/// Every other error of redb means a failing disk, or a file that is too short or inconsistent.
impl From<redb::Error> for StoreError {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::Io(source)
                if !matches!(source.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) =>
            {
                Self::Disk(source)
            }
            redb::Error::PreviousIo => Self::Disk(std::io::Error::other("an earlier attempt failed")),
            other => Self::Damaged(other.to_string()),
        }
    }
}

macro_rules! by_redb_error {
    ($($error:ty),*) => {$(
        impl From<$error> for StoreError {
            fn from(error: $error) -> Self {
                Self::from(redb::Error::from(error))
            }
        }
    )*};
}
by_redb_error!(redb::TransactionError, redb::TableError, redb::StorageError, redb::CommitError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_not_reported_as_damage() {
        let full = redb::CommitError::Storage(redb::StorageError::Io(ErrorKind::StorageFull.into()));
        let sentence = StoreError::from(full).to_string();
        assert_eq!(sentence, "the disk failed: no storage space");
        let torn = redb::StorageError::Io(ErrorKind::UnexpectedEof.into());
        assert!(StoreError::from(torn).to_string().starts_with("the state is damaged"));
    }
}
