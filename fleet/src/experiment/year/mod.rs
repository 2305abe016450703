//! A year of real meters through the production code, in virtual time at the pace of a real federation.
//!
//! [`run`] lets readings come in as time passes, opens the federation's rounds a few times a day, and judges forecasts at
//! rolling origins; [`YearFigures`] is the JSON object, with a table as text and an HTML page.

mod error;
mod figures;
mod household_choice;
mod learner;
mod network;
mod page;
mod pooled;
mod rewards;
mod run;
mod score;
mod settings;
#[cfg(test)]
mod tests;
mod variant_name;
mod virtual_federation;

pub use self::error::YearError;
pub use self::figures::{AheadOfAlone, ByVariant, LeadFigures, StalenessFigures, WeekFigures, YearFigures};
pub use self::page::page;
pub use self::rewards::{HouseholdRewards, RewardFigures};
pub use self::run::run;
pub use self::settings::{HouseholdSet, YearSettings};
pub use self::variant_name::YearVariant;

/// Progress of a year.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct YearProgress {
    /// Days that have passed.
    pub day: usize,
    /// Days in all.
    pub days: usize,
}
