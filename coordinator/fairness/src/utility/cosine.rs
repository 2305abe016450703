//! The utility `cosine`.

use super::MeasureRound;
use crate::round::RoundUpdates;
use crate::{ContributionConfig, Contributions, Device, Estimator, FairnessError, Gram, game, shapley};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// The cosine of a coalition's update with that of all: the utility of the paper's experiments.
///
/// # Formula
/// U(S) = ⟨g_S, g_N⟩ / (‖g_S‖‖g_N‖), U(∅) = 0; φ by the configured estimator on the Gram matrix, see
/// [`game::CosineGame`], or on the updates themselves, see [`game::StreamedCosineGame`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cosine;

impl MeasureRound for Cosine {
    fn measure(
        &mut self,
        round: &RoundUpdates<'_>,
        rng: &mut ChaCha8Rng,
    ) -> Result<Contributions, FairnessError> {
        let config = round.config;
        if streams(round.updates.len(), config) {
            let mut game = game::StreamedCosineGame::new(round.updates, round.weights, &round.coalition);
            if let Some(i) = game.without_norm() {
                return Err(round.without_norm(i));
            }
            return shapley::permutation(&mut game, config.effort(), rng);
        }
        config.estimator.estimate(&mut gram_game(round)?, config.effort(), rng)
    }

    fn needs_estimator(&self) -> bool {
        true
    }
}

/// The cosine game on the Gram matrix of the round.
pub(super) fn gram_game(round: &RoundUpdates<'_>) -> Result<game::CosineGame, FairnessError> {
    let gram = Gram::on(round.config.device, round.updates)?;
    if let Some(i) = (0..gram.size()).find(|&i| !gram.get(i, i).is_finite()) {
        return Err(round.without_norm(i));
    }
    Ok(game::CosineGame::new(&gram, round.weights, &round.coalition))
}

/// Orders for which passing over the updates costs as much as one node's share of the Gram matrix: a
/// product of the matrix is computed that much faster than a player joins without it.
const PRODUCTS_A_STEP: usize = 32;

/// True if so many nodes are valued faster without a Gram matrix: samples × N passes over an update grow
/// with N, the matrix with its square.
fn streams(nodes: usize, config: &ContributionConfig) -> bool {
    config.estimator == Estimator::Permutation
        && config.device == Device::Cpu
        && nodes > PRODUCTS_A_STEP.saturating_mul(config.samples)
}
