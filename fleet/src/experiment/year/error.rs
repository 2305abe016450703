//! A year that cannot be run.

use evenhand_federation::{FailureCause, RuleError};
use evenhand_models::ModelError;
use evenhand_program::exit::Exit;

/// A year that cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum YearError {
    /// A setting is outside its range.
    #[error("{field} is {found}; it must be {wanted}")]
    Setting {
        /// The flag.
        field: &'static str,
        /// Its value.
        found: f64,
        /// Values that it may have.
        wanted: &'static str,
    },
    /// A date is none.
    #[error("{flag} is {found:?}; write a date such as 2013-01-01")]
    Date {
        /// The flag.
        flag: &'static str,
        /// Its value.
        found: String,
    },
    /// Too few households are complete within the time.
    #[error(
        "{found} households have readings for at least 99 % of the time, and two are needed; choose other --from and --to, \
         or more --homes"
    )]
    Households {
        /// Their number.
        found: usize,
    },
    /// The federation refuses its rules.
    #[error(transparent)]
    Rules(#[from] RuleError),
    /// The federation failed.
    #[error("the federation failed: {0}; choose a lower --learning-rate")]
    Failed(FailureCause),
    /// The model cannot be trained or run.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A defect.
    #[error("{0}")]
    Defect(String),
}

impl YearError {
    /// The exit code of a program that ends by this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Setting { .. } | Self::Date { .. } | Self::Households { .. } | Self::Rules(_) => {
                Exit::Usage
            }
            Self::Failed(_) | Self::Model(_) | Self::Defect(_) => Exit::Software,
        }
    }
}
