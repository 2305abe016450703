//! The directions in which single answers scatter most, whatever the node.

use nalgebra::{DMatrix, SymmetricEigen};
use serde::{Deserialize, Serialize};

/// Directions that are taken out.
const DIRECTIONS: usize = 10;
/// The share of what was known that is carried to the next round.
const DECAY: f64 = 0.98;
/// Differences of a round that are taken into account, at most: they are alike, and the cost is quadratic.
const DIFFERENCES_MAX: usize = 64;

/// The leading principal directions of the scatter of answers about their node's mean.
///
/// A few samples have a composition (which classes, which hours) that moves a gradient more than anything else, and says
/// nothing about the quality of the data. In these directions there is much noise and, but for the common direction itself,
/// which is kept, little else: without them the rest is told apart more precisely.
///
/// Learnt from differences of consecutive answers of the same node, in which its mean is not contained; by a decayed
/// incremental principal component analysis.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct NoiseSubspace {
    directions: Vec<Vec<f32>>,
    variances: Vec<f64>,
}

impl NoiseSubspace {
    /// Takes the differences of one round into account.
    pub(super) fn learn(&mut self, differences: &[Vec<f32>]) {
        // A part of them, spread evenly.
        let step = differences.len().div_ceil(DIFFERENCES_MAX).max(1);
        let differences: Vec<&Vec<f32>> = differences.iter().step_by(step).collect();
        if differences.is_empty() {
            return;
        }
        let share = (1.0 / differences.len() as f64).sqrt();
        let known = self.directions.iter().zip(&self.variances);
        let known = known.map(|(direction, variance)| ((DECAY * variance).sqrt(), direction));
        let rows: Vec<(f64, &Vec<f32>)> =
            known.chain(differences.into_iter().map(|difference| (share, difference))).collect();
        let product = |i: usize, j: usize| {
            let (a, b) = (&rows[i], &rows[j]);
            a.0 * b.0 * a.1.iter().zip(b.1).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>()
        };
        let eigen = SymmetricEigen::new(DMatrix::from_fn(rows.len(), rows.len(), product));
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by(|a, b| eigen.eigenvalues[*b].total_cmp(&eigen.eigenvalues[*a]));
        let largest = eigen.eigenvalues[order[0]];
        order.retain(|place| eigen.eigenvalues[*place] > 1e-6 * largest);
        order.truncate(DIRECTIONS);
        let dimension = rows[0].1.len();
        let direction = |place: usize| {
            let mut sum = vec![0.0f64; dimension];
            for (row, (scale, values)) in rows.iter().enumerate() {
                let weight = scale * eigen.eigenvectors[(row, place)] / eigen.eigenvalues[place].sqrt();
                sum.iter_mut().zip(*values).for_each(|(sum, value)| *sum += weight * f64::from(*value));
            }
            sum.into_iter().map(|value| value as f32).collect()
        };
        self.directions = order.iter().map(|place| direction(*place)).collect();
        self.variances = order.iter().map(|place| eigen.eigenvalues[*place]).collect();
    }

    /// The directions to take out, of length 1 and at right angles to each other and to `kept`, of length 1 or empty.
    pub(super) fn basis(&self, kept: &[f32]) -> Vec<Vec<f32>> {
        let mut basis: Vec<Vec<f32>> = Vec::new();
        for direction in &self.directions {
            let mut left = direction.clone();
            if kept.len() == left.len() {
                remove(&mut left, kept);
            }
            for other in &basis {
                remove(&mut left, other);
            }
            let norm = left.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
            // What lay along the kept direction is gone, and the rest of it is rounding.
            if norm > 0.1 {
                left.iter_mut().for_each(|value| *value = (f64::from(*value) / norm) as f32);
                basis.push(left);
            }
        }
        basis
    }

    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

/// Takes the part along `direction`, of length 1, out of a vector.
pub(super) fn remove(values: &mut [f32], direction: &[f32]) {
    let along: f64 = values.iter().zip(direction).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
    values
        .iter_mut()
        .zip(direction)
        .for_each(|(value, d)| *value = (f64::from(*value) - along * f64::from(*d)) as f32);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn strong_directions_are_found_and_the_kept_one_stays() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        let mut subspace = NoiseSubspace::default();
        for _ in 0..40 {
            // Values 0 and 1 scatter ten times as much as the others.
            let difference = |rng: &mut rand_chacha::ChaCha8Rng| -> Vec<f32> {
                (0..100).map(|i| if i < 2 { 10.0 } else { 1.0 } * rng.random_range(-1.0f32..1.0)).collect()
            };
            let differences: Vec<Vec<f32>> = (0..12).map(|_| difference(&mut rng)).collect();
            subspace.learn(&differences);
        }
        let mut kept = vec![0.0; 100];
        kept[1] = 1.0;
        let basis = subspace.basis(&kept);
        let mut vector = vec![1.0f32; 100];
        basis.iter().for_each(|direction| remove(&mut vector, direction));
        assert!(vector[0].abs() < 0.2, "{}", vector[0]);
        assert!((vector[1] - 1.0).abs() < 1e-3, "{}", vector[1]);
        for (i, a) in basis.iter().enumerate() {
            for (j, b) in basis.iter().enumerate() {
                let product: f32 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                assert!((product - f32::from(u8::from(i == j))).abs() < 1e-4, "{i} {j} {product}");
            }
        }
    }
}
