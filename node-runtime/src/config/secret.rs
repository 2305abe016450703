//! Secrets in files or environment variables, so that a configuration can be shared.

use std::path::Path;

use super::NodeConfigError;

/// The content of the file, without the line end that editors add; else the environment variable; else none.
pub(crate) fn read(file: Option<&Path>, variable: Option<&str>) -> Result<Option<String>, NodeConfigError> {
    match (file, variable) {
        (Some(path), _) => {
            let text = std::fs::read_to_string(path)
                .map_err(|cause| NodeConfigError::File { path: path.into(), cause })?;
            Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
        }
        (None, Some(name)) => {
            std::env::var(name).map(Some).map_err(|_| NodeConfigError::Environment(name.to_owned()))
        }
        (None, None) => Ok(None),
    }
}
