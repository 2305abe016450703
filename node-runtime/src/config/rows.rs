//! The `[rows]` section: labelled rows instead of a series.

use super::section::{SectionCheck, section};
use super::{NodeConfig, NodeConfigError};

section! {
    /// For labelled rows instead of a series:
    pub struct RowsConfig {
        /// The shape of one row, e.g. [1, 28, 28] for a picture.
        pub shape: Vec<usize> = Vec::new() => "[144]",
        /// Rows in memory.
        pub history_rows: usize = 1024,
        /// Share of a batch that is drawn from rows that were used before, at least 0, below 1.
        pub replay_share: f64 = 0.0,
    }
}

impl SectionCheck for RowsConfig {
    fn check(&self, name: &str, _whole: &NodeConfig) -> Result<(), NodeConfigError> {
        let sentence = if self.shape.is_empty() || self.shape.contains(&0) {
            format!("{name}.shape = {:?}; name the length of every dimension of one row", self.shape)
        } else if self.history_rows == 0 {
            format!("{name}.history_rows = 0; at least one row is needed")
        } else if !(0.0..1.0).contains(&self.replay_share) {
            format!("{name}.replay_share = {}; it is at least 0 and below 1", self.replay_share)
        } else {
            return Ok(());
        };
        Err(NodeConfigError::Value(sentence))
    }
}
