//! The directions in which single answers scatter most, whatever the node.

use nalgebra::{DMatrix, SymmetricEigen};
use serde::{Deserialize, Serialize};

/// Directions that are learnt.
const DIRECTIONS: usize = 16;
/// The share of what was known that is carried to the next round.
const DECAY: f64 = 0.98;
/// The power of the ratio of variances by which a direction is scaled: ½ would make it scatter like the others.
const WHITENING_EXPONENT: f64 = 0.25;
/// Differences of a round that are taken into account, at most: they are alike, and the cost is quadratic.
const DIFFERENCES_MAX: usize = 64;

/// The leading principal directions of the scatter of answers about their node's mean.
///
/// A few samples have a composition (which classes, which hours) that moves a gradient more than anything else, and says
/// nothing about the quality of the data. Scaled down towards the scatter of all other directions, halfway to what Fisher's
/// linear discriminant does, they do not hide the rest.
///
/// Learnt from differences of consecutive answers of the same node, in which its mean is not contained; by a decayed
/// incremental principal component analysis.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct NoiseSubspace {
    directions: Vec<Vec<f32>>,
    variances: Vec<f64>,
    /// The scatter in all directions together.
    total: f64,
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
        let square = |values: &Vec<f32>| values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>();
        self.total =
            DECAY * self.total + share * share * differences.iter().map(|each| square(each)).sum::<f64>();
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

    /// Scales a vector down along the directions of much scatter, halfway to the scatter of all others.
    ///
    /// # Formula
    /// By (v₀/v)^¼, where v is the variance along the direction and v₀ that along the others: the deviation becomes the
    /// geometric mean of both. All the way, (v₀/v)^½, would also hide what tells a label that is wrong: a sample with the
    /// opposite gradient scatters along the mean itself.
    pub(super) fn whiten(&self, values: &mut [f32]) {
        let known: f64 = self.variances.iter().sum();
        let others = values.len().saturating_sub(self.directions.len()).max(1) as f64;
        let rest = (self.total - known).max(0.0) / others;
        for (direction, variance) in self.directions.iter().zip(&self.variances) {
            let scale = (rest / variance).powf(WHITENING_EXPONENT).min(1.0);
            let along: f64 = values.iter().zip(direction).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            let excess = (1.0 - scale) * along;
            let less =
                |(value, d): (&mut f32, &f32)| *value = (f64::from(*value) - excess * f64::from(*d)) as f32;
            values.iter_mut().zip(direction).for_each(less);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn directions_of_much_scatter_are_scaled_down() {
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
        let mut vector = vec![1.0f32; 100];
        subspace.whiten(&mut vector);
        // Ten times the deviation of the others: scaled by √(1/10), give or take what few differences tell.
        let expected = 0.1f32.sqrt();
        assert!(vector[..2].iter().all(|value| (value.abs() - expected).abs() < 0.1), "{:?}", &vector[..2]);
        let rest = vector[2..].iter().sum::<f32>() / 98.0;
        assert!((rest - 1.0).abs() < 0.1, "{rest}");
    }
}
