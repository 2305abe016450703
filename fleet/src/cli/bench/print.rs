//! Output of benchmarks.

use std::io::Write;

use serde::Serialize;

use crate::cli::FleetError;

/// The flag that chooses JSON
#[derive(Debug, Clone, clap::Args)]
pub(super) struct PrintArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl PrintArgs {
    /// Writes `figures` as one JSON object, or as `table` has it.
    pub(super) fn write<F: Serialize>(
        &self,
        figures: &F,
        table: impl FnOnce(&F) -> String,
        mut stdout: impl Write,
    ) -> Result<(), FleetError> {
        let text = if self.json {
            serde_json::to_string(figures).map_err(|error| FleetError::Output(error.into()))? + "\n"
        } else {
            table(figures)
        };
        stdout.write_all(text.as_bytes()).map_err(FleetError::Output)
    }
}
