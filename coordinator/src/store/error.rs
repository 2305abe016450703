//! What can be wrong with a state folder.

use std::io::ErrorKind;
use std::path::PathBuf;

use evenhand_protocol::exit::Exit;

use evenhand_federation::{RestoreError, RuleError};

/// Why a state folder is of no use.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Somebody else has it.
    #[error(
        "another process uses the state in {folder}; stop it first, or give this one its own state.folder"
    )]
    InUse {
        /// Which folder.
        folder: PathBuf,
    },
    /// There is nothing in it.
    #[error("there is no federation in {folder}; name the state.folder of one that was run")]
    Absent {
        /// Which folder.
        folder: PathBuf,
    },
    /// The file system says no.
    #[error("cannot use {path}: {source}")]
    Io {
        /// What was touched.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The disk does not take or give what it should.
    #[error("the disk failed: {0}")]
    Disk(std::io::Error),
    /// Written by a newer program.
    #[error("the state has format {found}, this program reads {known}; use the program that wrote it")]
    Format {
        /// What it says of itself.
        found: u16,
        /// What would be right.
        known: u16,
    },
    /// Not what was written.
    #[error("the state is damaged: {0}; restore the folder from a backup")]
    Damaged(String),
    /// The federation in it cannot be restored.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// The configuration wants another federation.
    #[error(transparent)]
    Rules(#[from] RuleError),
}

impl StoreError {
    /// What the program tells the shell.
    pub fn exit(&self) -> Exit {
        match self {
            Self::InUse { .. } => Exit::Busy,
            Self::Rules(_) | Self::Restore(RestoreError::Onnx) => Exit::Config,
            Self::Absent { .. }
            | Self::Io { .. }
            | Self::Disk(_)
            | Self::Format { .. }
            | Self::Damaged(_)
            | Self::Restore(_) => Exit::Data,
        }
    }
}

/// All that redb can say but "in use" comes down to a disk, or a file that is not what was written: one that is too
/// short, or says what it cannot mean.
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
    fn a_full_disk_is_no_damage() {
        let full = redb::CommitError::Storage(redb::StorageError::Io(ErrorKind::StorageFull.into()));
        let words = StoreError::from(full).to_string();
        assert_eq!(words, "the disk failed: no storage space");
        let torn = redb::StorageError::Io(ErrorKind::UnexpectedEof.into());
        assert!(StoreError::from(torn).to_string().starts_with("the state is damaged"));
    }
}
