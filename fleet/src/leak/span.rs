//! The analytic attack on a dense first layer: one linear system, no search.

use super::least_squares::conjugate_gradients;
use super::network::{add_scaled, dot};
use super::problem::{LeakProblem, ValueSlot};

/// Eigenvalues below this share of the largest are rounding of single precision.
const ROUNDING: f64 = 1e-12;
/// Weight of the public guess beside the system, so that what it leaves open is guessed.
const GUESS_WEIGHT: f64 = 1e-9;

/// The unknowns whose samples lie in the span of the first layer's gradient, nearest to the public guess; none where the
/// gradient says nothing that way.
///
/// The gradient of a dense layer's weights W and biases b is Σᵢ δᵢ(xᵢ, 1)ᵀ, summed over samples and, in local training, over
/// steps. So its rows are combinations of the vectors (xᵢ, 1), and if the layer has more units than the batch has samples
/// they span them all: every sample satisfies P⊥(xᵢ, 1) = 0, with P⊥ the projection off the rows. These equations are linear
/// in the readings, and the constant 1 tells their scale. One sample is the quotient of the two gradients.
pub(super) fn by_span(problem: &LeakProblem) -> Option<Vec<f64>> {
    let (units, inputs) = problem.network.first_layer()?;
    let columns = inputs + 1;
    let (matrix, bias) = problem.seen.vector[..units * columns].split_at(units * inputs);
    let rows: Vec<Vec<f64>> = matrix
        .chunks_exact(inputs)
        .zip(bias)
        .map(|(row, bias)| row.iter().copied().chain([*bias]).collect())
        .collect();
    let basis = row_basis(&rows, problem.seen.noise)?;
    if basis.len() >= units.min(columns) {
        return None;
    }
    let off_span = |sample: &mut [f64]| {
        for row in &basis {
            let along = dot(sample, row);
            add_scaled(sample, -along, row);
        }
    };
    let count = problem.unknowns.len();
    // P⊥ of all samples, then back to the unknowns: the derivative of half the squared distance.
    let slopes = |values: &[f64], constant: f64| {
        let mut of_values = vec![0.0; problem.layout.slots.len()];
        for (sample, of) in values.chunks_exact(inputs).zip(of_values.chunks_exact_mut(inputs)) {
            let mut distance: Vec<f64> = sample.iter().copied().chain([constant]).collect();
            off_span(&mut distance);
            of.copy_from_slice(&distance[..inputs]);
        }
        problem.in_unknowns(&of_values)
    };
    let samples = problem.layout.samples * inputs;
    let guess = vec![0.0; count];
    let mut downhill = slopes(&problem.batch(&guess).values[..samples], 1.0);
    downhill.iter_mut().for_each(|slope| *slope = -*slope);
    let product = |v: &[f64]| {
        let value = |slot: &ValueSlot| match slot {
            ValueSlot::Known(_) => 0.0,
            ValueSlot::Unknown(number) => problem.unknowns[*number].deviation * v[*number],
        };
        let values: Vec<f64> = problem.layout.slots[..samples].iter().map(value).collect();
        let mut product = slopes(&values, 0.0);
        add_scaled(&mut product, GUESS_WEIGHT, v);
        product
    };
    Some(conjugate_gradients(product, &downhill, 4 * count.min(500)))
}

/// An orthonormal basis of the rows' span, without what noise and rounding add to it.
fn row_basis(rows: &[Vec<f64>], noise: f64) -> Option<Vec<Vec<f64>>> {
    let units = rows.len();
    let gram: Vec<Vec<f64>> = rows.iter().map(|a| rows.iter().map(|b| dot(a, b)).collect()).collect();
    let (values, vectors) = eigen(gram);
    let most = values.iter().copied().fold(0.0, f64::max);
    let by_noise = noise.powi(2) * ((rows[0].len() as f64).sqrt() + (units as f64).sqrt()).powi(2);
    let least = (ROUNDING * most).max(by_noise);
    let basis: Vec<Vec<f64>> = (values.iter().zip(&vectors))
        .filter(|(value, _)| **value > least)
        .map(|(value, vector)| {
            let mut row = vec![0.0; rows[0].len()];
            vector.iter().zip(rows).for_each(|(part, of)| add_scaled(&mut row, part / value.sqrt(), of));
            row
        })
        .collect();
    (!basis.is_empty()).then_some(basis)
}

/// Eigenvalues and eigenvectors of a symmetric matrix, by Jacobi's rotations.
fn eigen(mut matrix: Vec<Vec<f64>>) -> (Vec<f64>, Vec<Vec<f64>>) {
    let size = matrix.len();
    let mut vectors: Vec<Vec<f64>> =
        (0..size).map(|row| (0..size).map(|column| f64::from(u8::from(row == column))).collect()).collect();
    let trace: f64 = (0..size).map(|at| matrix[at][at]).sum();
    for _ in 0..30 {
        let off: f64 = (0..size).map(|row| dot(&matrix[row][..row], &matrix[row][..row])).sum();
        if off.sqrt() <= 1e-15 * trace {
            break;
        }
        for p in 0..size {
            for q in p + 1..size {
                let beside = matrix[p][q];
                if beside == 0.0 {
                    continue;
                }
                let theta = (matrix[q][q] - matrix[p][p]) / (2.0 * beside);
                let tangent = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let cosine = 1.0 / (tangent * tangent + 1.0).sqrt();
                let sine = tangent * cosine;
                let (head, tail) = matrix.split_at_mut(q);
                rotate(&mut head[p], &mut tail[0], cosine, sine);
                for row in &mut matrix {
                    (row[p], row[q]) = (cosine * row[p] - sine * row[q], sine * row[p] + cosine * row[q]);
                }
                let (head, tail) = vectors.split_at_mut(q);
                rotate(&mut head[p], &mut tail[0], cosine, sine);
            }
        }
    }
    ((0..size).map(|at| matrix[at][at]).collect(), vectors)
}

fn rotate(a: &mut [f64], b: &mut [f64], cosine: f64, sine: f64) {
    for (a, b) in a.iter_mut().zip(b) {
        (*a, *b) = (cosine * *a - sine * *b, sine * *a + cosine * *b);
    }
}
