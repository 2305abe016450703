//! Day-ahead forecasts of a load: a naive profile, the inputs of a model that corrects it, and a mixture that is never much
//! worse than the best naive forecast. No clock, no files, no model: the caller runs the model on [`PreparedForecast::inputs`].
//!
//! | file | concept |
//! |---|---|
//! | `history.rs` | the loads of the last weeks and their residuals |
//! | `local_time.rs` | the time that a household's clocks show |
//! | `covariates.rs` | other series, known in part ahead of time |
//! | `slot_profile.rs` | quantiles of the same time of day over two weeks: the naive profile |
//! | `origin.rs` | what is known at the moment of a forecast |
//! | `lead_row.rs` | one row of model inputs for each lead, and its target |
//! | `naive.rs` | naive forecasts |
//! | `bernstein.rs` | weights of experts by Bernstein online aggregation |
//! | `mixture.rs` | the weights by lead group and quantile |
//! | `pending.rs` | forecasts whose steps have not ended |
//! | `personal.rs` | training of the personal part |
//! | `reference_rows.rs` | rows by which data are measured |
//! | `skill.rs` | errors against the best naive forecast |
//! | `vector.rs` | a forecast as a vector of quantiles |
//! | `forecaster.rs` | all of it, for one load |

mod bernstein;
mod covariates;
mod forecaster;
mod history;
mod lead_row;
mod local_time;
mod mixture;
mod naive;
mod origin;
mod pending;
mod personal;
mod reference_rows;
mod skill;
mod slot_profile;
mod vector;

#[cfg(test)]
mod tests;

pub use bernstein::{Bernstein, LEARNING_RATES};
pub use covariates::{COVARIATES_MAX, Covariate, Covariates};
pub use forecaster::{ForecastSettings, Forecaster, ModelOutputs, PreparedForecast};
pub use history::LoadHistory;
pub use lead_row::{INPUT_NAMES, INPUTS, LeadRows, TARGET_MAX};
pub use local_time::LocalTime;
pub use mixture::{ForecastMixture, LeadGroup};
pub use naive::{Expert, NAIVE_EXPERTS};
pub use personal::{PERSONAL_ROWS_MAX, PERSONAL_TRAINING};
pub use skill::{LeadSkill, SkillRecord, SkillSums, StalenessClass};
pub use slot_profile::SlotProfile;
pub use vector::{ForecastVector, QUANTILES};

/// Seconds of a day.
const DAY_S: i64 = 86_400;
