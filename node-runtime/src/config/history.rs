//! The `[history]` section: readings from before the node was installed.

use std::path::PathBuf;

use super::section::{SectionCheck, section};
use super::{NodeConfig, NodeConfigError, SampleFormat};

section! {
    /// Readings from before the node was installed, so that the first forecast need not wait. They are read at the start, and
    /// only what is older than the node's own readings is added.
    pub struct HistoryConfig {
        /// A .csv file with the columns time and value, as the source's readings; or a .json file with Home Assistant's
        /// long-term statistics: the answer of its action recorder.get_statistics.
        pub path: PathBuf = PathBuf::new() => "\"/var/lib/evenhand/history.csv\"",
        /// What its values are multiplied by to be in the unit of the source.
        pub factor: f64 = 1.0,
    }
}

impl SectionCheck for HistoryConfig {
    fn check(&self, name: &str, whole: &NodeConfig) -> Result<(), NodeConfigError> {
        let day_ahead = whole.rows.is_none() && whole.window.samples == SampleFormat::DayAhead;
        let sentence = match self {
            Self { path, .. } if path.as_os_str().is_empty() => {
                format!("{name}.path is missing; name the file")
            }
            Self { factor, .. } if !factor.is_finite() || *factor == 0.0 => {
                format!("{name}.factor = {factor}; it is a number other than 0, e.g. 0.001 for W as kW")
            }
            _ if !day_ahead => {
                format!("[{name}] is for day-ahead forecasts; set window.samples = \"day-ahead\"")
            }
            _ => return Ok(()),
        };
        Err(NodeConfigError::Value(sentence))
    }
}
