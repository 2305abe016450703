//! Errors of the dashboard.

use std::net::SocketAddr;
use std::path::PathBuf;

/// An error that prevents a dashboard.
#[derive(Debug, thiserror::Error)]
pub enum DashboardError {
    /// The address is taken, or not ours.
    #[error("cannot listen on {address}: {source}; choose another dashboard.listen")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The token cannot be read.
    #[error("dashboard.token_file: cannot read {}: {source}", path.display())]
    TokenFile {
        /// Which file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The token could be guessed.
    #[error(
        "dashboard.token_file: {} holds {found} characters; write at least {least} (openssl rand -hex 32)",
        path.display()
    )]
    ShortToken {
        /// Which file.
        path: PathBuf,
        /// As found.
        found: usize,
        /// As wanted.
        least: usize,
    },
}
