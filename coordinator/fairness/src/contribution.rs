//! The contributions of one round.

use super::FairnessError;
use serde::{Deserialize, Serialize};

/// φᵢ,ₜ of one round, a value for each update in the order given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contributions {
    /// φᵢ or its estimate.
    pub values: Vec<f64>,
    /// The standard error of each value: 0 where it is exact, NaN where one sample leaves it unknown.
    pub standard_errors: Vec<f64>,
}

impl Contributions {
    /// Values without error.
    pub(super) fn exact(values: Vec<f64>) -> Self {
        Self { standard_errors: vec![0.0; values.len()], values }
    }

    /// The same, if every value is finite.
    ///
    /// # Errors
    /// [`FairnessError::NotFinite`] with the index of the first value that is not.
    pub fn finite(self) -> Result<Self, FairnessError> {
        match self.values.iter().position(|value| !value.is_finite()) {
            Some(i) => Err(FairnessError::NotFinite { field: format!("contributions[{i}]") }),
            None => Ok(self),
        }
    }
}
