//! Errors of a source.

use std::path::PathBuf;

/// Error that ends a source.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A recorded source has ended; this is no failure.
    #[error("the source has ended")]
    Ended,
    /// A file or device does not open or read.
    #[error("{path}: {cause}")]
    File {
        /// The file or device.
        path: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The system starts no thread for the source.
    #[error("cannot start a thread for the source: {0}")]
    Thread(std::io::Error),
    /// A meter or broker at the other end of a connection does not answer as it should.
    #[error("{peer}: {cause}")]
    Peer {
        /// Its address.
        peer: String,
        /// The error of the connection.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The broker's address or certificates cannot be used.
    #[error(transparent)]
    Link(#[from] evenhand_link::LinkError),
    /// A file or variable that the configuration names cannot be read.
    #[error(transparent)]
    Config(#[from] Box<crate::config::NodeConfigError>),
    /// A column that the configuration names does not exist.
    #[error("{path} has no column {column:?}; its columns are {columns}")]
    Column {
        /// The file.
        path: PathBuf,
        /// The configured column.
        column: String,
        /// The columns of the file.
        columns: String,
    },
}
