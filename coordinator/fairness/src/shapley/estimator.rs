//! The estimators of Shapley values, by name.

use super::{Effort, exact, permutation, stratified, stratified_independent};
use crate::{Contributions, FairnessError, game::Game};
use rand::Rng;
use serde::{Deserialize, Serialize};

/// A way to find the Shapley values of a game without a closed form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// Every coalition; up to [`PLAYERS_MAX`](super::PLAYERS_MAX) nodes.
    Exact,
    /// One random coalition of each size for each node, [`stratified`].
    #[default]
    Stratified,
    /// The same with every coalition drawn by itself, [`stratified_independent`].
    StratifiedIndependent,
    /// Random orders in antithetic pairs, [`permutation`].
    Permutation,
}

impl Estimator {
    /// The Shapley values of `game`, or their estimates.
    ///
    /// # Errors
    /// [`FairnessError::TooManyPlayers`] for [`Estimator::Exact`] beyond
    /// [`PLAYERS_MAX`](super::PLAYERS_MAX), [`FairnessError::OutOfRange`] for an effort of no samples.
    pub fn estimate(
        self,
        game: &mut impl Game,
        effort: Effort,
        rng: &mut impl Rng,
    ) -> Result<Contributions, FairnessError> {
        match self {
            Self::Exact => exact(game),
            Self::Stratified => stratified(game, effort, rng),
            Self::StratifiedIndependent => stratified_independent(game, effort, rng),
            Self::Permutation => permutation(game, effort, rng),
        }
    }
}
