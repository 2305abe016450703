//! θ, its digest, and the step from one round to the next.

use std::sync::Arc;

use evenhand_protocol::identity::Digest;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Parameters handled at a time: sums of so many fit the nearest cache.
const BLOCK: usize = 2048;

/// θ with its digest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "SavedWeights", into = "SavedWeights")]
pub struct Weights {
    values: Arc<[f32]>,
    digest: Digest,
}

/// Weights as they are saved: the digest follows from them.
#[derive(Serialize, Deserialize)]
struct SavedWeights(#[serde(with = "evenhand_protocol::bytes::f32s")] Vec<f32>);

impl From<SavedWeights> for Weights {
    fn from(saved: SavedWeights) -> Self {
        Self::new(saved.0.into())
    }
}

impl From<Weights> for SavedWeights {
    fn from(weights: Weights) -> Self {
        Self(weights.values.to_vec())
    }
}

impl Weights {
    /// Weights, with their digest taken.
    pub fn new(values: Arc<[f32]>) -> Self {
        let digest = Digest::of_weights(&values);
        Self { values, digest }
    }

    /// The values.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The values without copying them.
    pub fn to_shared(&self) -> Arc<[f32]> {
        Arc::clone(&self.values)
    }

    /// Their digest.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// True if no value is NaN or infinite.
    pub fn is_finite(&self) -> bool {
        self.values.iter().all(|value| value.is_finite())
    }

    /// θ_t = θ_{t−1} − η Σ pᵢΔθᵢ, in one pass over each vector, summed in f64 in the order given.
    pub fn stepped(&self, updates: &[&[f32]], weights: &[f64], learning_rate: f64) -> Self {
        let mut next = self.values.to_vec();
        next.par_chunks_mut(BLOCK).enumerate().for_each(|(block, values)| {
            let span = block * BLOCK..block * BLOCK + values.len();
            let mut sums = [0.0f64; BLOCK];
            for (update, weight) in updates.iter().zip(weights) {
                for (sum, value) in sums.iter_mut().zip(&update[span.clone()]) {
                    *sum += weight * f64::from(*value);
                }
            }
            for (value, sum) in values.iter_mut().zip(sums) {
                *value = (f64::from(*value) - learning_rate * sum) as f32;
            }
        });
        Self::new(next.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_the_weighted_sum_of_the_updates() {
        let dim = 2 * BLOCK + 7;
        let theta: Vec<f32> = (0..dim).map(|i| i as f32).collect();
        let (a, b): (Vec<f32>, Vec<f32>) = (0..dim).map(|i| (4.0, -(i as f32))).unzip();
        let next = Weights::new(theta.into()).stepped(&[&a, &b], &[0.25, 0.75], 2.0);
        for (i, value) in next.values().iter().enumerate() {
            let i = i as f32;
            assert_eq!(*value, i - 2.0 * (0.25 * 4.0 - 0.75 * i));
        }
        assert_eq!(next.digest(), Digest::of_weights(next.values()));
    }
}
