//! Utilities: the value U(S) of a coalition S of a round's updates, g_S = Σ_{i∈S} cᵢΔθᵢ, g_N = Σ pᵢΔθᵢ.
//!
//! A utility is a file with a type that measures a round and holds what it carries to the next one; a variant of
//! [`Utility`], by which it is configured; and a variant of [`UtilityState`], by which it is saved. Its parameters are
//! fields of [`ContributionConfig`](super::ContributionConfig).

mod cosine;
mod direction;
mod inner_product;
mod leave_one_out;
mod projection;

pub use cosine::Cosine;
pub use direction::DirectionEma;
pub use inner_product::InnerProduct;
pub use leave_one_out::LeaveOneOut;
pub use projection::Projection;

use super::round::RoundUpdates;
use super::{Contributions, FairnessError};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A utility by its name in configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Utility {
    /// ⟨g_S, g_N⟩, see [`InnerProduct`].
    InnerProduct,
    /// ⟨g_S, g_N⟩ / (‖g_S‖‖g_N‖), the utility of the paper's experiments, see [`Cosine`].
    #[default]
    Cosine,
    /// Not a Shapley value: U(N) − U(N∖{i}) of the cosine, see [`LeaveOneOut`].
    LeaveOneOut,
    /// ⟨g_S, g_N⟩ / ‖g_N‖², see [`Projection`].
    Projection,
    /// Agreement with the direction of the other nodes over many rounds, see [`DirectionEma`].
    Direction,
}

/// A utility and what it carries from round to round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UtilityState {
    /// Of [`Utility::InnerProduct`].
    InnerProduct(InnerProduct),
    /// Of [`Utility::Cosine`].
    Cosine(Cosine),
    /// Of [`Utility::LeaveOneOut`].
    LeaveOneOut(LeaveOneOut),
    /// Of [`Utility::Projection`].
    Projection(Projection),
    /// Of [`Utility::Direction`].
    Direction(DirectionEma),
}

/// The measurement of one round by a utility.
trait MeasureRound {
    /// φᵢ of each update, the state moving on by one round. After an error the state is discarded.
    fn measure(
        &mut self,
        round: &RoundUpdates<'_>,
        rng: &mut ChaCha8Rng,
    ) -> Result<Contributions, FairnessError>;

    /// True if the Shapley values are found by the configured estimator.
    fn needs_estimator(&self) -> bool {
        false
    }

    /// True if a round depends on the rounds before.
    fn is_stateful(&self) -> bool {
        false
    }

    /// True if the state is one of a model of so many parameters.
    fn fits(&self, _dimension: usize) -> bool {
        true
    }
}

impl fmt::Display for Utility {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(out)
    }
}

impl Utility {
    /// True if its Shapley values are found by the configured [`Estimator`](super::Estimator).
    pub fn needs_estimator(self) -> bool {
        UtilityState::initial(self).get().needs_estimator()
    }
}

impl UtilityState {
    /// The state before the first round.
    pub fn initial(utility: Utility) -> Self {
        match utility {
            Utility::InnerProduct => Self::InnerProduct(InnerProduct),
            Utility::Cosine => Self::Cosine(Cosine),
            Utility::LeaveOneOut => Self::LeaveOneOut(LeaveOneOut),
            Utility::Projection => Self::Projection(Projection),
            Utility::Direction => Self::Direction(DirectionEma::default()),
        }
    }

    fn get(&self) -> &dyn MeasureRound {
        match self {
            Self::InnerProduct(utility) => utility,
            Self::Cosine(utility) => utility,
            Self::LeaveOneOut(utility) => utility,
            Self::Projection(utility) => utility,
            Self::Direction(utility) => utility,
        }
    }

    fn get_mut(&mut self) -> &mut dyn MeasureRound {
        match self {
            Self::InnerProduct(utility) => utility,
            Self::Cosine(utility) => utility,
            Self::LeaveOneOut(utility) => utility,
            Self::Projection(utility) => utility,
            Self::Direction(utility) => utility,
        }
    }

    pub(super) fn measure(
        &mut self,
        round: &RoundUpdates<'_>,
        rng: &mut ChaCha8Rng,
    ) -> Result<Contributions, FairnessError> {
        self.get_mut().measure(round, rng)
    }

    pub(super) fn is_stateful(&self) -> bool {
        self.get().is_stateful()
    }

    pub(super) fn fits(&self, dimension: usize) -> bool {
        self.get().fits(dimension)
    }

    pub(super) fn is_of(&self, utility: Utility) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(&Self::initial(utility))
    }
}
