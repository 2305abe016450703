//! The folder of a benchmark's state.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::BenchError;

/// The flag that names the folder
#[derive(Debug, Clone, clap::Args)]
pub(super) struct StateArgs {
    /// Folder of the state; a temporary one if absent
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
}

/// A folder; gone with this value if it is a temporary one.
pub(super) enum StateFolder {
    Named(PathBuf),
    Temporary(TempDir),
}

impl StateArgs {
    pub(super) fn folder(&self) -> Result<StateFolder, BenchError> {
        Ok(match &self.state {
            Some(folder) => StateFolder::Named(folder.clone()),
            None => StateFolder::Temporary(tempfile::tempdir()?),
        })
    }
}

impl StateFolder {
    pub(super) fn path(&self) -> &Path {
        match self {
            StateFolder::Named(folder) => folder,
            StateFolder::Temporary(folder) => folder.path(),
        }
    }
}
