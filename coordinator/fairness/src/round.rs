//! The updates of one round, validated.

use super::{ContributionConfig, Contributions, FairnessError};

/// Updates of one dimension and their weights, fit to be measured.
pub(super) struct RoundUpdates<'a> {
    /// Δθᵢ.
    pub(super) updates: &'a [&'a [f32]],
    /// pᵢ.
    pub(super) weights: &'a [f64],
    /// cᵢ: the weights in coalitions, see [`Weighting`](super::Weighting).
    pub(super) coalition: Vec<f64>,
    pub(super) config: &'a ContributionConfig,
}

impl<'a> RoundUpdates<'a> {
    /// Checks lengths, weights and configuration; the updates' values are not read.
    pub(super) fn new(
        updates: &'a [&'a [f32]],
        weights: &'a [f64],
        config: &'a ContributionConfig,
    ) -> Result<Self, FairnessError> {
        let first = updates.first().ok_or(FairnessError::Empty { field: "updates" })?;
        for (i, update) in updates.iter().enumerate() {
            if update.len() != first.len() {
                return Err(FairnessError::Length {
                    field: format!("updates[{i}]"),
                    found: update.len(),
                    expected: first.len(),
                });
            }
        }
        if weights.len() != updates.len() {
            return Err(FairnessError::Length {
                field: "weights".into(),
                found: weights.len(),
                expected: updates.len(),
            });
        }
        for (i, &weight) in weights.iter().enumerate() {
            let field = || format!("weights[{i}]");
            if !weight.is_finite() {
                return Err(FairnessError::NotFinite { field: field() });
            }
            if weight < 0.0 {
                return Err(FairnessError::OutOfRange {
                    field: field(),
                    found: weight,
                    wanted: "at least 0",
                });
            }
        }
        config.check()?;
        let coalition = config.weighting.coalition_weights(weights);
        Ok(Self { updates, weights, coalition, config })
    }

    /// The number of values of an update.
    pub(super) fn dimension(&self) -> usize {
        self.updates.first().map_or(0, |update| update.len())
    }

    /// Contributions with a closed form; where one is not finite, the error names the update that is not.
    pub(super) fn exact(&self, values: Vec<f64>) -> Result<Contributions, FairnessError> {
        // Searched only where it shows: the updates are not read once more for it.
        if values.iter().any(|value| !value.is_finite()) {
            self.check_finite()?;
        }
        Ok(Contributions::exact(values))
    }

    /// The reason why the update of node i has no norm.
    pub(super) fn without_norm(&self, i: usize) -> FairnessError {
        match self.check_finite() {
            Err(error) => error,
            Ok(()) => FairnessError::TooLarge { field: format!("updates[{i}]") },
        }
    }

    fn check_finite(&self) -> Result<(), FairnessError> {
        match self.updates.iter().position(|update| update.iter().any(|value| !value.is_finite())) {
            Some(i) => Err(FairnessError::NotFinite { field: format!("updates[{i}]") }),
            None => Ok(()),
        }
    }
}
