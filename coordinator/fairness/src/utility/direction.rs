//! The utility `direction`.

use super::MeasureRound;
use crate::round::RoundUpdates;
use crate::vector::{Dot, SquaredNorm, add, vanishes};
use crate::{Contributions, FairnessError};
use pulp::Arch;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Deserializer, Serialize};
use std::sync::Arc;

/// Values worked on at a time: sums of so many fit the nearest cache.
const BLOCK: usize = 2048;

/// d_{t−1}, the exponential moving average of the aggregate's direction, empty before the first round; and the utility
/// that compares updates with it.
///
/// # Formula
/// d_t = κd_{t−1} + Σ pᵢΔθᵢ, aᵢ = cos(Δθᵢ, d_t − pᵢΔθᵢ), a² = Σ pᵢaᵢ² / Σ pᵢ, U(S) = Σ_{i∈S} cᵢaᵢ/a.
///
/// Player i adds the same to every coalition, so φᵢ = cᵢaᵢ/a is the Shapley value, exactly. U(N) is 1 when all agree
/// with the direction alike, and less otherwise.
///
/// Departs from the paper, whose utilities compare updates with the sum of the same round: that sum is as noisy as
/// a round is short, and a long update has drawn it towards itself. Here no update is compared with itself, and lengths
/// count only for the direction of the others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionEma(
    #[serde(serialize_with = "<[f32]>::serialize", deserialize_with = "shared")] Arc<[f32]>,
);

fn shared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<[f32]>, D::Error> {
    Vec::<f32>::deserialize(deserializer).map(Into::into)
}

impl MeasureRound for DirectionEma {
    fn measure(
        &mut self,
        round: &RoundUpdates<'_>,
        _: &mut ChaCha8Rng,
    ) -> Result<Contributions, FairnessError> {
        let dim = round.dimension();
        if !self.fits(dim) {
            return Err(FairnessError::Length {
                field: "direction".into(),
                found: self.0.len(),
                expected: dim,
            });
        }
        let direction = self.advance(round);
        self.0 = direction.iter().map(|value| *value as f32).collect();
        if self.0.iter().any(|value| !value.is_finite()) {
            return Err(FairnessError::NotFinite { field: "direction".into() });
        }
        let RoundUpdates { updates, weights, .. } = *round;
        let agreements = agreements(&direction, updates, weights);
        let square: f64 = weights.iter().zip(&agreements).map(|(weight, each)| weight * each * each).sum();
        let scale = (square / weights.iter().sum::<f64>()).sqrt();
        let share = |(weight, each): (&f64, f64)| if scale > 0.0 { weight * each / scale } else { 0.0 };
        Ok(Contributions::exact(round.coalition.iter().zip(agreements).map(share).collect()))
    }

    fn is_stateful(&self) -> bool {
        true
    }

    fn fits(&self, dimension: usize) -> bool {
        self.0.is_empty() || self.0.len() == dimension
    }
}

impl DirectionEma {
    /// A direction with these values.
    pub fn new(values: Vec<f32>) -> Self {
        Self(values.into())
    }

    /// One value for each parameter of the model; none before the first round.
    pub fn values(&self) -> &[f32] {
        &self.0
    }

    /// d_t, each value summed in the order of nodes.
    fn advance(&self, round: &RoundUpdates<'_>) -> Vec<f64> {
        let mut direction = vec![0.0; round.dimension()];
        direction.par_chunks_mut(BLOCK).enumerate().for_each(|(block, values)| {
            let span = block * BLOCK..block * BLOCK + values.len();
            if let Some(before) = self.0.get(span.clone()) {
                add(values, round.config.direction_decay, before);
            }
            for (update, weight) in round.updates.iter().zip(round.weights) {
                add(values, *weight, &update[span.clone()]);
            }
        });
        direction
    }
}

/// aᵢ of every node; 0 where there is no direction to compare.
fn agreements(direction: &[f64], updates: &[&[f32]], weights: &[f64]) -> Vec<f64> {
    let processor = Arch::new();
    let whole: f64 = direction.iter().map(|value| value * value).sum();
    let agreement = |(update, weight): (&&[f32], &f64)| {
        let square = processor.dispatch(SquaredNorm(update));
        let along = processor.dispatch(Dot(direction, update));
        let others = whole - 2.0 * weight * along + weight * weight * square;
        if square == 0.0 || vanishes(others, whole + weight * weight * square) {
            return 0.0;
        }
        ((along - weight * square) / (square * others).sqrt()).clamp(-1.0, 1.0)
    };
    updates.par_iter().zip(weights).map(agreement).collect()
}
