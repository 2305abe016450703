//! Settings of a year.

use std::ops::Range;

use super::YearError;
use crate::data::Dataset;

/// Households on which settings are chosen, and those on which they are reported: no household is in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HouseholdSet {
    /// Forty households by seed, and the first half of the time.
    Choosing,
    /// All the others.
    Others,
    /// Everybody.
    All,
}

/// Settings of a year.
#[derive(Debug, Clone, PartialEq)]
pub struct YearSettings {
    /// The data set: meters or electricity.
    pub dataset: Dataset,
    /// The households.
    pub set: HouseholdSet,
    /// At most so many of them.
    pub homes_max: Option<usize>,
    /// Beginning and end, in milliseconds since 1970 in UTC.
    pub period_ms: Range<i64>,
    /// Seed of everything random.
    pub seed: u64,
    /// Rounds a day.
    pub rounds_a_day: u32,
    /// Draws a round.
    pub k: u32,
    /// Share of the households that are there from the beginning.
    pub founders: f64,
    /// The others join one after another within so many days.
    pub join_days: u32,
    /// Hours between two forecasts that are judged.
    pub stride_h: u32,
    /// Local steps of an update.
    pub epochs: u32,
    /// Step size of local training.
    pub learning_rate: f32,
    /// Momentum of local training.
    pub momentum: f32,
    /// Rows of an update, at most.
    pub samples_max: u32,
    /// Days of readings from which the rows of an update are taken.
    pub history_days: u32,
}

impl YearSettings {
    /// Settings of `days` days from 1970 on, for tests.
    #[cfg(test)]
    pub(super) fn example(days: i64) -> Self {
        Self {
            dataset: Dataset::Meters,
            set: HouseholdSet::All,
            homes_max: None,
            period_ms: 0..days * 86_400_000,
            seed: 1,
            rounds_a_day: 1,
            k: 2,
            founders: 0.75,
            join_days: 10,
            stride_h: 6,
            epochs: 2,
            learning_rate: 0.1,
            momentum: 0.9,
            samples_max: 64,
            history_days: 10,
        }
    }

    pub(super) fn check(&self) -> Result<(), YearError> {
        let within = |field, found: f64, holds: bool, wanted| match holds {
            true => Ok(()),
            false => Err(YearError::Setting { field, found, wanted }),
        };
        let rounds = self.rounds_a_day;
        within(
            "--rounds-a-day",
            rounds.into(),
            [1, 2, 3, 4, 6, 8, 12, 24].contains(&rounds),
            "a divisor of 24",
        )?;
        let stride = self.stride_h;
        within("--stride-h", stride.into(), [1, 2, 3, 4, 6, 8, 12, 24].contains(&stride), "a divisor of 24")?;
        within("--founders", self.founders, (0.1..=1.0).contains(&self.founders), "between 0.1 and 1")?;
        within("--local-steps", self.epochs.into(), self.epochs > 0, "at least 1")?;
        within("--samples", self.samples_max.into(), self.samples_max > 0, "at least 1")?;
        within("--history-days", self.history_days.into(), self.history_days >= 2, "at least 2")?;
        let rate = self.learning_rate;
        within("--learning-rate", rate.into(), rate.is_finite() && rate > 0.0, "positive")?;
        let momentum = self.momentum;
        within("--momentum", momentum.into(), (0.0..1.0).contains(&momentum), "at least 0 and below 1")?;
        let days = (self.period_ms.end - self.period_ms.start) / 86_400_000;
        within("--from and --to", days as f64, days >= 60, "at least 60 days apart")
    }
}
