//! `[contribution]`: the measurement of contributions.

use super::FairnessError;
use super::gram::Device;
use super::shapley::{self, Effort, Estimator};
use super::utility::Utility;
use serde::{Deserialize, Serialize};

/// The power of the weight pᵢ in a coalition's update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weighting {
    /// g_S = Σ pᵢΔθᵢ, as in the paper.
    #[default]
    Once,
    /// g_S = Σ pᵢ²Δθᵢ against g_N = Σ pᵢΔθᵢ, as in the published code; the same when all weights are equal.
    Twice,
}

impl Weighting {
    /// cᵢ of every node: pᵢ or pᵢ².
    pub(super) fn coalition_weights(self, weights: &[f64]) -> Vec<f64> {
        match self {
            Self::Once => weights.to_vec(),
            Self::Twice => weights.iter().map(|p| p * p).collect(),
        }
    }
}

/// The utility whose contributions are measured, and how.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct ContributionConfig {
    /// The value of a coalition.
    pub utility: Utility,
    /// The estimator of the Shapley values, for utilities without a closed form; "exact" is for federation.nodes_max up to 20.
    pub estimator: Estimator,
    /// Samples to take; with `standard_error`, at most so many.
    pub samples: usize,
    /// Stop sampling once no value's standard error exceeds this; without it, all samples are taken.
    ///
    /// Example: `standard_error = 0.001`
    pub standard_error: Option<f64>,
    /// The power of the weights in coalitions.
    pub weighting: Weighting,
    /// The processor that builds the Gram matrix, for utilities that need it; "gpu" needs a build with that feature.
    pub device: Device,
    /// κ: the share of the direction that is carried to the next round, for the utility "direction".
    pub direction_decay: f64,
}

impl Default for ContributionConfig {
    fn default() -> Self {
        Self {
            utility: Utility::default(),
            estimator: Estimator::default(),
            samples: 16,
            standard_error: None,
            weighting: Weighting::default(),
            device: Device::default(),
            direction_decay: 0.95,
        }
    }
}

impl ContributionConfig {
    /// This file, whose doc comments explain the keys in `print-config`.
    pub const SOURCE: &str = include_str!("config.rs");

    /// Checks every value's range.
    ///
    /// # Errors
    /// [`FairnessError::OutOfRange`] or [`FairnessError::NotFinite`] with the name of the field.
    pub fn check(&self) -> Result<(), FairnessError> {
        let out_of_range = |field: &str, found, wanted| {
            Err(FairnessError::OutOfRange { field: field.into(), found, wanted })
        };
        if self.samples == 0 {
            return out_of_range("samples", 0.0, "at least 1");
        }
        if !(0.0..1.0).contains(&self.direction_decay) {
            return out_of_range("direction_decay", self.direction_decay, "at least 0 and below 1");
        }
        match self.standard_error {
            Some(error) if error.is_nan() || error <= 0.0 => out_of_range("standard_error", error, "above 0"),
            Some(error) if error.is_infinite() => {
                Err(FairnessError::NotFinite { field: "standard_error".into() })
            }
            _ => Ok(()),
        }
    }

    /// The most nodes that one round may have: enumeration has a limit, nothing else has.
    pub fn nodes_max(&self) -> Option<usize> {
        let enumerates = self.utility.needs_estimator() && self.estimator == Estimator::Exact;
        enumerates.then_some(shapley::PLAYERS_MAX)
    }

    /// The samples and the precision asked of an estimator.
    pub fn effort(&self) -> Effort {
        Effort { samples: self.samples, standard_error: self.standard_error }
    }
}
