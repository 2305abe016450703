//! The cosine game on the updates themselves, for more nodes than a Gram matrix pays for.

use super::{Coalition, cosine};
use crate::vector;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// The game of [`CosineGame`](super::CosineGame) without a Gram matrix: a player who joins costs one pass over its update
/// instead of a row of products, so an order of N nodes costs O(N·dim) and nothing is quadratic in N.
pub struct StreamedCosineGame<'a> {
    updates: &'a [&'a [f32]],
    /// cᵢ.
    coalition: &'a [f64],
    /// cᵢ⟨Δθᵢ, g_N⟩.
    alignment: Vec<f64>,
    /// cᵢ²‖Δθᵢ‖².
    squares: Vec<f64>,
    /// ‖g_N‖.
    whole: f64,
    /// g_S.
    sum: Vec<f64>,
    /// ⟨g_S, g_N⟩, ‖g_S‖² and Σ_{i∈S} cᵢ²‖Δθᵢ‖².
    aligned: f64,
    square: f64,
    mass: f64,
}

impl<'a> StreamedCosineGame<'a> {
    /// The game of these updates: `coalition[i]` = cᵢ, `weights[i]` = pᵢ.
    pub fn new(updates: &'a [&'a [f32]], weights: &[f64], coalition: &'a [f64]) -> Self {
        let processor = Arch::new();
        let norms: Vec<f64> =
            updates.par_iter().map(|update| processor.dispatch(vector::SquaredNorm(update))).collect();
        let squared = |factors: &[f64]| norms.iter().zip(factors).map(|(norm, f)| f * f * norm).collect();
        let (squares, masses): (Vec<f64>, Vec<f64>) = (squared(coalition), squared(weights));
        // ⟨Δθᵢ, g_N⟩; times pᵢ they sum up to ‖g_N‖².
        let toward = vector::products(updates, weights);
        let whole: f64 = weights.iter().zip(&toward).map(|(p, toward)| p * toward).sum();
        let vanished = vector::vanishes(whole, masses.iter().sum());
        Self {
            updates,
            coalition,
            alignment: coalition.iter().zip(&toward).map(|(c, toward)| c * toward).collect(),
            squares,
            whole: if vanished { 0.0 } else { whole.sqrt() },
            sum: vec![0.0; updates.first().map_or(0, |update| update.len())],
            aligned: 0.0,
            square: 0.0,
            mass: 0.0,
        }
    }

    /// The first node whose update is so large or so broken that it has no norm.
    pub(crate) fn without_norm(&self) -> Option<usize> {
        self.squares.iter().position(|square| !square.is_finite())
    }
}

impl Coalition for StreamedCosineGame<'_> {
    fn players(&self) -> usize {
        self.updates.len()
    }

    fn clear(&mut self) {
        self.sum.fill(0.0);
        (self.aligned, self.square, self.mass) = (0.0, 0.0, 0.0);
    }

    fn join(&mut self, player: usize) {
        let (weight, own) = (self.coalition[player], self.squares[player]);
        let pull =
            Arch::new().dispatch(JoinUpdate { sum: &mut self.sum, weight, update: self.updates[player] });
        self.aligned += self.alignment[player];
        self.square += 2.0 * pull + own;
        self.mass += own;
    }

    fn value(&mut self) -> f64 {
        cosine::value(self.aligned, self.square, self.mass, self.whole)
    }
}

/// ⟨g_S, cᵢΔθᵢ⟩, and then g_S + cᵢΔθᵢ in place of g_S.
struct JoinUpdate<'a> {
    sum: &'a mut [f64],
    weight: f64,
    update: &'a [f32],
}

impl WithSimd for JoinUpdate<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let pull = self.weight * vector::dot(self.sum, self.update);
        vector::add(self.sum, self.weight, self.update);
        pull
    }
}
