//! Projections on 16 random directions, by which an answer is known again.

use super::signature::mixed;
use serde::{Deserialize, Serialize};

const DIRECTIONS: usize = 16;

/// The products of a vector with 16 vectors of random signs. Unlike the bits of a signature they keep lengths: where few values
/// are much larger than all others, the signs of sums tell about these few alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct AnswerProjection([f32; DIRECTIONS]);

impl AnswerProjection {
    /// The projection of a vector.
    pub(super) fn of(values: &[f32]) -> Self {
        let mut sums = [0.0f32; DIRECTIONS];
        for (position, value) in values.iter().enumerate() {
            let signs = mixed(position as u64);
            for (direction, sum) in sums.iter_mut().enumerate() {
                *sum += if signs >> direction & 1 == 1 { -value } else { *value };
            }
        }
        Self(sums)
    }

    /// The estimated distance of two vectors: its square has a relative deviation of √(2/16).
    pub(super) fn distance(&self, other: &Self) -> f64 {
        let squares = self.0.iter().zip(&other.0).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2));
        (squares.sum::<f64>() / DIRECTIONS as f64).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn distances_are_kept_though_few_values_are_large() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(4);
        for _ in 0..20 {
            // Four values of 100 beside 2,000 of about 1.
            let mut one: Vec<f32> = (0..2000).map(|_| rng.random_range(-1.0..1.0)).collect();
            one[..4].fill(100.0);
            let mut other: Vec<f32> = (0..2000).map(|_| rng.random_range(-1.0..1.0)).collect();
            other[..4].fill(100.0);
            let squares = one.iter().zip(&other).map(|(a, b)| f64::from(a - b).powi(2));
            let expected = squares.sum::<f64>().sqrt();
            let found = AnswerProjection::of(&one).distance(&AnswerProjection::of(&other));
            assert!((0.3..2.0).contains(&(found / expected)), "{found} for {expected}");
        }
    }
}
