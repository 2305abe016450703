//! The utility `inner-product`.

use super::MeasureRound;
use crate::round::RoundUpdates;
use crate::{Contributions, FairnessError, vector};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// The inner product of a coalition's update with that of all.
///
/// # Formula
/// U(S) = ⟨g_S, g_N⟩, φᵢ = cᵢ⟨Δθᵢ, g_N⟩: player i adds the same to every coalition, so this is the Shapley value,
/// exactly, without a Gram matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InnerProduct;

impl MeasureRound for InnerProduct {
    fn measure(
        &mut self,
        round: &RoundUpdates<'_>,
        _: &mut ChaCha8Rng,
    ) -> Result<Contributions, FairnessError> {
        let products = vector::products(round.updates, round.weights);
        round.exact(round.coalition.iter().zip(products).map(|(weight, product)| weight * product).collect())
    }
}
