//! The `[window]` section: rules by which readings become samples.

use serde::{Deserialize, Serialize};

use super::section::{SectionCheck, section};
use super::{HolidayDate, NodeConfig, NodeConfigError};
use crate::time_zone::LocalTimeZone;

section! {
    /// The `[window]` section: rules by which readings become samples.
    pub struct SeriesConfig {
        /// "day-ahead": a sample is one step of the next day, for models of quantiles such as load-quantiles. "lags": a sample is
        /// `lags` steps and one value ahead.
        pub samples: SampleFormat = SampleFormat::DayAhead,
        /// Length of a step in seconds; the readings within a step are averaged.
        pub step_s: u32 = 900,
        /// Steps that the model looks back.
        pub lags: usize = 24,
        /// Steps that it looks ahead.
        pub horizon: usize = 1,
        /// Steps of a day-ahead forecast; 0: one day.
        pub horizon_steps: usize = 0,
        /// Steps in memory; a day-ahead forecast has 58 days.
        pub history_steps: usize = 2_880,
        /// Missing steps in a row that are interpolated at most; they serve as input, never as target.
        pub gap_steps_max: usize = 2,
        /// Memory of the running mean and deviation by which readings are normalised, in steps.
        pub normalisation_steps: u32 = 35_040,
        /// Time zone of the household, for the time of day and the week: a name such as "Europe/London", or an offset such as
        /// "+01:00".
        pub time_zone: LocalTimeZone = LocalTimeZone::default(),
        /// Holidays of the household, such as ["2026-12-25"]: days that count as weekend in a day-ahead forecast.
        pub holidays: Vec<HolidayDate> = Vec::new(),
        /// "level": a reading is the value at the moment (kW). "counter": the total since installation (kWh); a step is then
        /// the growth an hour.
        pub quantity: MeterQuantity = MeterQuantity::Level,
        /// Share of a batch that is drawn from samples that were used before, at least 0, below 1.
        pub replay_share: f64 = 0.0,
    }
}

/// Format of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SampleFormat {
    /// The last steps, and the value some steps later.
    Lags,
    /// One row for each lead of a day-ahead forecast.
    DayAhead,
}

/// Meaning of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeterQuantity {
    /// The value at the moment, e.g. a power in kW; a step is the mean of its readings.
    Level,
    /// The total since the meter was installed, e.g. an energy in kWh; a step is the growth an hour.
    Counter,
}

impl SeriesConfig {
    /// Steps of a day.
    pub fn day_steps(&self) -> usize {
        (86_400 / self.step_s.max(1) as usize).max(1)
    }
}

impl SectionCheck for SeriesConfig {
    fn check(&self, name: &str, _whole: &NodeConfig) -> Result<(), NodeConfigError> {
        let span = self.lags.saturating_add(self.horizon);
        let sentence = match self {
            Self { step_s: 0, .. } => format!("{name}.step_s = 0; a step lasts at least one second"),
            Self { lags: 0, .. } => {
                format!("{name}.lags = 0; a model needs at least one step to look back on")
            }
            Self { horizon: 0, .. } => {
                format!("{name}.horizon = 0; a forecast looks at least one step ahead")
            }
            Self { replay_share, .. } if !(0.0..1.0).contains(replay_share) => {
                format!("{name}.replay_share = {replay_share}; it is at least 0 and below 1")
            }
            Self { history_steps, .. } if *history_steps < span => format!(
                "{name}.history_steps = {history_steps} cannot hold one sample; raise it to lags + horizon = {span} or more"
            ),
            Self { samples: SampleFormat::DayAhead, step_s, .. }
                if !(60..=3600).contains(step_s) || 86_400 % step_s != 0 =>
            {
                format!(
                    "{name}.step_s = {step_s}; steps of a day-ahead forecast last 60 to 3600 seconds and divide a day, e.g. 900"
                )
            }
            Self { samples: SampleFormat::DayAhead, horizon_steps, step_s, .. }
                if horizon_steps.saturating_mul(*step_s as usize) > 7 * 86_400 =>
            {
                format!("{name}.horizon_steps = {horizon_steps}; a forecast reaches a week at most")
            }
            _ => return Ok(()),
        };
        Err(NodeConfigError::Value(sentence))
    }
}
