//! The `[pace]` section: times at which readings arrive.

use serde::{Deserialize, Serialize};

use super::section::{SectionCheck, section};
use super::{NodeConfig, NodeConfigError};

section! {
    /// The `[pace]` section: times at which readings arrive.
    pub struct PaceConfig {
        /// "clock": readings arrive when they are measured. "rounds": simulated or recorded readings arrive round by round.
        pub by: Pace = Pace::Clock,
        /// Readings in each round, by rounds.
        pub readings_per_round: usize = 8,
        /// Speed of a synthetic household relative to real time, by the clock.
        pub speed: f64 = 1.0,
    }
}

/// The pace of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// Readings arrive when they are measured.
    Clock,
    /// Simulated or recorded readings arrive round by round.
    Rounds,
}

impl SectionCheck for PaceConfig {
    fn check(&self, name: &str, _whole: &NodeConfig) -> Result<(), NodeConfigError> {
        if self.readings_per_round == 0 {
            let sentence = format!("{name}.readings_per_round = 0; take at least one reading a round");
            return Err(NodeConfigError::Value(sentence));
        }
        if !(self.speed.is_finite() && self.speed > 0.0) {
            return Err(NodeConfigError::Value(format!("{name}.speed must be positive; 1.0 is real time")));
        }
        Ok(())
    }
}
