//! How contributions are to be told.

use super::gram::Device;
use serde::{Deserialize, Serialize};

/// What a coalition is worth, U(S), with g_S = Σ_{i∈S} pᵢΔθᵢ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Utility {
    /// ⟨g_S, g_N⟩: additive, so its Shapley values have a closed form.
    InnerProduct,
    /// ⟨g_S, g_N⟩ / (‖g_S‖‖g_N‖), U(∅) = 0: what the paper's experiments use.
    #[default]
    Cosine,
    /// Minus the loss, on validation data, of the model moved by g_S only.
    NegativeLoss,
    /// The accuracy, on validation data, of the model moved by g_S only.
    Accuracy,
    /// Not a Shapley value: U(N) − U(N∖{i}) of the cosine utility, as a cheap comparison.
    LeaveOneOut,
    /// ⟨g_S, g_N⟩ / ‖g_N‖²: how far S alone goes along the way of all. Ours: additive like the inner product, and on the
    /// cosine's scale, where the whole is worth 1.
    Projection,
    /// How well the updates of S point where all have been going. Ours: additive, see [`Course`](super::Course).
    Course,
}

impl Utility {
    /// Whether coalitions are valued by scoring a model, see [`contributions_scored`](super::contributions_scored).
    pub fn is_scored(self) -> bool {
        matches!(self, Self::NegativeLoss | Self::Accuracy)
    }

    /// Whether contributions follow at once, without coalitions to enumerate or to sample.
    pub fn is_additive(self) -> bool {
        matches!(self, Self::InnerProduct | Self::Projection | Self::Course)
    }

    /// The name in configurations and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::InnerProduct => "inner-product",
            Self::Cosine => "cosine",
            Self::NegativeLoss => "negative-loss",
            Self::Accuracy => "accuracy",
            Self::LeaveOneOut => "leave-one-out",
            Self::Projection => "projection",
            Self::Course => "course",
        }
    }
}

/// How the Shapley values of a game that is not additive are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// Every coalition; up to [`shapley::PLAYERS_MAX`](super::shapley::PLAYERS_MAX) nodes.
    Exact,
    /// One random coalition of each size for each node, [`shapley::stratified`](super::shapley::stratified).
    #[default]
    Stratified,
    /// The same with every coalition drawn by itself, [`shapley::stratified_independent`](super::shapley::stratified_independent).
    StratifiedIndependent,
    /// Random orders in antithetic pairs, [`shapley::permutation`](super::shapley::permutation).
    Permutation,
}

/// How often the weight pᵢ enters a coalition's update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weighting {
    /// g_S = Σ pᵢΔθᵢ, as in the paper.
    #[default]
    Once,
    /// g_S = Σ pᵢ²Δθᵢ against g_N = Σ pᵢΔθᵢ, as in the published code; the same when all weights are equal.
    Twice,
}

/// How a round's contributions are appraised.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Appraisal {
    /// What a coalition is worth.
    pub utility: Utility,
    /// How the values are found when the utility is not additive.
    pub estimator: Estimator,
    /// Samples to take; with `standard_error`, at most so many.
    pub samples: usize,
    /// Stop sampling once no value's standard error exceeds this.
    pub standard_error: Option<f64>,
    /// How weights enter coalitions.
    pub weighting: Weighting,
    /// What builds the Gram matrix, for utilities that need it.
    pub device: Device,
    /// κ: share of the course that is kept from round to round.
    pub course_kept: f64,
}

impl Default for Appraisal {
    fn default() -> Self {
        Self {
            utility: Utility::default(),
            estimator: Estimator::default(),
            samples: 16,
            standard_error: None,
            weighting: Weighting::default(),
            device: Device::default(),
            course_kept: 0.95,
        }
    }
}
