//! The utility `projection`.

use super::MeasureRound;
use crate::round::RoundUpdates;
use crate::{Contributions, FairnessError, vector};
use pulp::Arch;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// The length of a coalition's update along the update of all, in shares of that.
///
/// # Formula
/// U(S) = ⟨g_S, g_N⟩ / ‖g_N‖² with ‖g_N‖² = Σ pᵢ⟨Δθᵢ, g_N⟩, φᵢ = cᵢ⟨Δθᵢ, g_N⟩ / ‖g_N‖²; 0 where the updates cancel.
///
/// Ours: additive like the inner product, and on the cosine's scale, where the whole has the value 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Projection;

impl MeasureRound for Projection {
    fn measure(
        &mut self,
        round: &RoundUpdates<'_>,
        _: &mut ChaCha8Rng,
    ) -> Result<Contributions, FairnessError> {
        let RoundUpdates { updates, weights, .. } = *round;
        let products = vector::products(updates, weights);
        let whole: f64 = weights.iter().zip(&products).map(|(weight, product)| weight * product).sum();
        let processor = Arch::new();
        let square = |update: &&[f32]| processor.dispatch(vector::SquaredNorm(update));
        let mass: f64 =
            updates.iter().zip(weights).map(|(update, weight)| weight * weight * square(update)).sum();
        let cancelled = vector::vanishes(whole, mass);
        let share = |(weight, product)| if cancelled { 0.0 } else { weight * product / whole };
        round.exact(round.coalition.iter().zip(products).map(share).collect())
    }
}
