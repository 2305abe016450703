//! The `[privacy]` section: the least that an update is made of, and noise.

use serde::{Deserialize, Serialize};

use super::section::{SectionCheck, section};
use super::{NodeConfig, NodeConfigError, SampleFormat};

section! {
    /// The `[privacy]` section: the least that an update is made of, and noise.
    pub struct PrivacyConfig {
        /// The least readings behind an update or a reference gradient: measured steps that samples forecast, or labelled rows.
        /// 0: a day's worth of steps, or 256 rows; 1: no floor. An order for fewer samples is declined.
        pub readings_min: usize = 0,
        /// Standard deviation of the normal noise on all that is sent, in units of what other data could have changed; 0: none.
        /// Forecasts of all suffer: see docs/privacy.md for how much.
        pub noise: f64 = 0.0,
        /// With noise: an update is shortened to this length before.
        pub clip: f64 = 1.0,
        /// What the account of spent privacy is about. "household": all readings there ever were. "day": those of any one day,
        /// with day-ahead samples. "row": any one labelled row.
        pub unit: PrivacyUnit = PrivacyUnit::Household,
        /// The δ of that account.
        pub delta: f64 = 1e-5,
        /// The ε from which on the node declines to be measured and to train; 0: never.
        pub epsilon_max: f64 = 0.0,
    }
}

/// Data whose change the noise hides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrivacyUnit {
    /// All readings that the node ever had.
    Household,
    /// The readings of one day.
    Day,
    /// One labelled row.
    Row,
}

impl PrivacyUnit {
    /// Its name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Household => "household",
            Self::Day => "day",
            Self::Row => "row",
        }
    }
}

impl PrivacyConfig {
    /// No protection: for simulations that compare with published figures, and tests.
    pub fn none() -> Self {
        Self { readings_min: 1, ..Self::default() }
    }

    /// The length to which the gradient of each row is clipped, where each row is protected.
    pub(crate) fn row_clip(&self) -> Option<f32> {
        (self.noise > 0.0 && self.unit == PrivacyUnit::Row).then_some(self.clip as f32)
    }
}

impl SectionCheck for PrivacyConfig {
    fn check(&self, name: &str, whole: &NodeConfig) -> Result<(), NodeConfigError> {
        let Self { noise, clip, delta, epsilon_max, .. } = self;
        let least = if self.readings_min == 0 { crate::window::ROWS_LEAST } else { self.readings_min };
        let rows = whole.rows.as_ref();
        let day_ahead = rows.is_none() && whole.window.samples == SampleFormat::DayAhead;
        let sentence = if let Some(rows) = rows.filter(|rows| rows.history_rows < least) {
            format!(
                "{name}.readings_min needs {least} rows, and rows.history_rows = {} holds fewer; raise one or lower the other",
                rows.history_rows
            )
        } else if !(noise.is_finite() && *noise >= 0.0) {
            format!("{name}.noise = {noise}; it is 0 or positive")
        } else if !(clip.is_finite() && *clip > 0.0) {
            format!("{name}.clip = {clip}; it is positive")
        } else if !(*delta > 0.0 && *delta < 1.0) {
            format!("{name}.delta = {delta} is no probability; choose e.g. 1e-5")
        } else if !(epsilon_max.is_finite() && *epsilon_max >= 0.0) {
            format!("{name}.epsilon_max = {epsilon_max}; it is 0 for no limit, or positive")
        } else if *epsilon_max > 0.0 && *noise == 0.0 {
            format!("{name}.epsilon_max = {epsilon_max} needs noise; set {name}.noise, or remove it")
        } else if self.unit == PrivacyUnit::Day && !day_ahead {
            format!("{name}.unit = \"day\" needs window.samples = \"day-ahead\"; choose \"household\"")
        } else if self.unit == PrivacyUnit::Row && rows.is_none_or(|rows| rows.replay_share > 0.0) {
            format!(
                "{name}.unit = \"row\" needs [rows] with replay_share = 0, each used once; choose \"household\""
            )
        } else {
            return Ok(());
        };
        Err(NodeConfigError::Value(sentence))
    }
}
