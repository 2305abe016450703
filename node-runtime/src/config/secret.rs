//! Secrets stand in files or in the environment, so that a configuration can be shown around.

use std::path::Path;

use super::ConfigError;

/// What the file holds, without the line end that editors add; else the variable of the environment; else nothing.
pub(super) fn read(file: Option<&Path>, variable: Option<&str>) -> Result<Option<String>, ConfigError> {
    match (file, variable) {
        (Some(path), _) => {
            let text = std::fs::read_to_string(path)
                .map_err(|cause| ConfigError::File { path: path.into(), cause })?;
            Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
        }
        (None, Some(name)) => {
            std::env::var(name).map(Some).map_err(|_| ConfigError::Environment(name.to_owned()))
        }
        (None, None) => Ok(None),
    }
}
