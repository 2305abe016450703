//! The utility `course`: whose updates point where all have been going.

use std::sync::Arc;

use pulp::Arch;
use rayon::prelude::*;
use serde::{Deserialize, Deserializer, Serialize};

use super::additive::{Dot, SquaredNorm, add, exactly};
use super::error::FairnessError;
use super::game::cosine::vanishes;
use super::{Appraisal, Contributions};

/// Values worked on at a time: sums of so many fit the nearest cache.
const BLOCK: usize = 2048;

/// d_{t−1}: where the updates of the rounds so far have pointed, earlier ones counting less; nowhere before the first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Course(#[serde(serialize_with = "<[f32]>::serialize", deserialize_with = "shared")] Arc<[f32]>);

fn shared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<[f32]>, D::Error> {
    Vec::<f32>::deserialize(deserializer).map(Into::into)
}

impl Course {
    /// A course that was taken down elsewhere.
    pub fn new(values: Vec<f32>) -> Self {
        Self(values.into())
    }

    /// Its values; none before the first round.
    pub fn values(&self) -> &[f32] {
        &self.0
    }

    /// φᵢ of a round's updates, and d_t.
    ///
    /// # Formula
    ///
    /// d_t = κd_{t−1} + Σ pᵢΔθᵢ, aᵢ = cos(Δθᵢ, d_t − pᵢΔθᵢ), a² = Σ pᵢaᵢ² / Σ pᵢ, U(S) = Σ_{i∈S} cᵢaᵢ/a.
    ///
    /// Player i adds the same to every coalition, so φᵢ = cᵢaᵢ/a is the Shapley value, exactly. U(N) is 1 when all agree
    /// with the course alike, and less otherwise.
    ///
    /// Departs from the paper, whose utilities hold updates against the sum of the same round: that sum is as noisy as
    /// a round is short, and whoever is loud has drawn it towards itself. Here nobody is held against its own update of
    /// the round, and lengths count only for where the others are going.
    pub(super) fn turn(
        &self,
        updates: &[&[f32]],
        weights: &[f64],
        coalition: &[f64],
        appraisal: &Appraisal,
    ) -> Result<(Contributions, Self), FairnessError> {
        let dim = updates.first().map_or(0, |update| update.len());
        if !self.0.is_empty() && self.0.len() != dim {
            return Err(FairnessError::Length { field: "course".into(), found: self.0.len(), expected: dim });
        }
        let turned = self.turned(updates, weights, appraisal.course_kept, dim);
        let course = Self(turned.iter().map(|value| *value as f32).collect());
        if course.0.iter().any(|value| !value.is_finite()) {
            return Err(FairnessError::NotFinite { field: "course".into() });
        }
        let agreements = agreements(&turned, updates, weights);
        let square: f64 = weights.iter().zip(&agreements).map(|(weight, each)| weight * each * each).sum();
        let scale = (square / weights.iter().sum::<f64>()).sqrt();
        let share = |(weight, each): (&f64, f64)| if scale > 0.0 { weight * each / scale } else { 0.0 };
        Ok((exactly(coalition.iter().zip(agreements).map(share).collect()), course))
    }

    /// d_t, each value summed in the order of nodes.
    fn turned(&self, updates: &[&[f32]], weights: &[f64], kept: f64, dim: usize) -> Vec<f64> {
        let mut turned = vec![0.0; dim];
        turned.par_chunks_mut(BLOCK).enumerate().for_each(|(block, values)| {
            let span = block * BLOCK..block * BLOCK + values.len();
            if let Some(before) = self.0.get(span.clone()) {
                add(values, kept, before);
            }
            for (update, weight) in updates.iter().zip(weights) {
                add(values, *weight, &update[span.clone()]);
            }
        });
        turned
    }
}

/// aᵢ of every node; 0 where there is no direction to compare.
fn agreements(course: &[f64], updates: &[&[f32]], weights: &[f64]) -> Vec<f64> {
    let processor = Arch::new();
    let whole: f64 = course.iter().map(|value| value * value).sum();
    let agreement = |(update, weight): (&&[f32], &f64)| {
        let square = processor.dispatch(SquaredNorm(update));
        let along = processor.dispatch(Dot(course, update));
        let others = whole - 2.0 * weight * along + weight * weight * square;
        if square == 0.0 || vanishes(others, whole + weight * weight * square) {
            return 0.0;
        }
        ((along - weight * square) / (square * others).sqrt()).clamp(-1.0, 1.0)
    };
    updates.par_iter().zip(weights).map(agreement).collect()
}
