//! Gradient matching: damped Gauss-Newton on the difference to the update that was seen, by conjugate gradients.

use super::network::{add_scaled, dot};
use super::problem::LeakProblem;

/// Effort of one start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchEffort {
    /// Gauss-Newton steps.
    pub steps: usize,
    /// Conjugate gradients in each.
    pub inner: usize,
}

/// Readings that an attack arrived at.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// The unknowns, in deviations from their public means.
    pub deviations: Vec<f64>,
    /// Length of the difference between their update and the one seen, relative to that.
    pub misfit: f64,
}

/// Weight of the public guess at the beginning: what is unlikely is tried last.
pub(super) const GUESS_WEIGHT: f64 = 1e-2;
/// What remains of it at the end without noise.
pub(super) const GUESS_WEIGHT_MIN: f64 = 1e-13;
/// Up to so many unknowns the system of a step is solved directly.
const DENSE_MAX: usize = 200;
/// Misfit that is as good as none: rounding.
const MISFIT_MIN: f64 = 2e-8;

/// From a start to the nearest minimum of ‖U(z) − U*‖²/‖U*‖² + w‖z‖²/n, with w falling from `guess_weight` to what the noise
/// leaves of it.
pub(super) fn refine(
    problem: &LeakProblem,
    start: &[f64],
    guess_weight: f64,
    effort: SearchEffort,
) -> Solution {
    let seen = &problem.seen.vector;
    let scale = 1.0 / dot(seen, seen).max(f64::MIN_POSITIVE);
    let count = start.len().max(1) as f64;
    let least = (problem.seen.noise.powi(2) * scale * count).max(GUESS_WEIGHT_MIN);
    let mut state = start.to_vec();
    let mut update = problem.update(&state);
    let (mut weight, mut damping) = (guess_weight.max(least), guess_weight);
    let residual = |update: &[f64]| -> Vec<f64> { update.iter().zip(seen).map(|(u, s)| u - s).collect() };
    let misfit = |update: &[f64]| residual(update).iter().map(|r| r * r).sum::<f64>() * scale;
    for _ in 0..effort.steps {
        let difference = residual(&update);
        let mut downhill = problem.backward(&state, &difference);
        downhill.iter_mut().zip(&state).for_each(|(d, z)| *d = -(*d * scale + weight / count * z));
        let ridge = (weight + damping) / count;
        let step = if start.len() <= DENSE_MAX {
            dense_step(problem, &state, &update, scale, ridge, &downhill)
        } else {
            let curvature = |v: &[f64]| {
                let mut product = problem.backward(&state, &problem.forward(&state, &update, v));
                product.iter_mut().zip(v).for_each(|(p, v)| *p = *p * scale + ridge * v);
                product
            };
            conjugate_gradients(curvature, &downhill, effort.inner)
        };
        let moved: Vec<f64> = state.iter().zip(&step).map(|(z, d)| z + d).collect();
        let next = problem.update(&moved);
        let cost = |update: &[f64], z: &[f64]| misfit(update) + weight / count * dot(z, z);
        if cost(&next, &moved) < cost(&update, &state) {
            (state, update) = (moved, next);
            damping = (damping * 0.3).max(1e-15);
            weight = (weight * 0.3).max(least);
        } else {
            damping = (damping * 5.0).min(1e3);
            weight = (weight * 0.7).max(least);
        }
        if misfit(&update).sqrt() < MISFIT_MIN {
            break;
        }
    }
    Solution { misfit: misfit(&update).sqrt(), deviations: state }
}

/// The step of the normal equations, with every column of J.
fn dense_step(
    problem: &LeakProblem,
    state: &[f64],
    update: &[f64],
    scale: f64,
    ridge: f64,
    downhill: &[f64],
) -> Vec<f64> {
    let count = state.len();
    let column = |at: usize| {
        let mut direction = vec![0.0; count];
        direction[at] = 1.0;
        problem.forward(state, update, &direction)
    };
    let columns: Vec<Vec<f64>> = (0..count).map(column).collect();
    let mut matrix = vec![vec![0.0; count]; count];
    for (row, line) in matrix.iter_mut().enumerate() {
        for (beside, entry) in line.iter_mut().take(row + 1).enumerate() {
            let product = dot(&columns[row], &columns[beside]) * scale;
            *entry = product + if row == beside { ridge } else { 0.0 };
        }
    }
    solve(matrix, downhill)
}

/// The solution of a symmetric positive system given by its lower half, by Cholesky's decomposition.
fn solve(mut lower: Vec<Vec<f64>>, right: &[f64]) -> Vec<f64> {
    let count = right.len();
    let mut x = right.to_vec();
    for row in 0..count {
        for column in 0..=row {
            let known = dot(&lower[row][..column], &lower[column][..column]);
            let rest = lower[row][column] - known;
            lower[row][column] =
                if row == column { rest.max(f64::MIN_POSITIVE).sqrt() } else { rest / lower[column][column] };
        }
        x[row] = (x[row] - dot(&lower[row][..row], &x[..row])) / lower[row][row];
    }
    for row in (0..count).rev() {
        x[row] /= lower[row][row];
        let value = x[row];
        x[..row].iter_mut().zip(&lower[row]).for_each(|(x, entry)| *x -= entry * value);
    }
    x
}

/// A solution of A·x = b for a symmetric positive A, to a hundredth.
pub(super) fn conjugate_gradients(product: impl Fn(&[f64]) -> Vec<f64>, b: &[f64], steps: usize) -> Vec<f64> {
    let mut x = vec![0.0; b.len()];
    let mut residual = b.to_vec();
    let mut direction = b.to_vec();
    let mut squared = dot(&residual, &residual);
    let enough = squared * 1e-6;
    for _ in 0..steps {
        let along = product(&direction);
        let curvature = dot(&direction, &along);
        if !(curvature > 0.0 && squared > enough) {
            break;
        }
        let length = squared / curvature;
        add_scaled(&mut x, length, &direction);
        add_scaled(&mut residual, -length, &along);
        let next = dot(&residual, &residual);
        let keep = next / squared;
        direction.iter_mut().zip(&residual).for_each(|(d, r)| *d = r + keep * *d);
        squared = next;
    }
    x
}
