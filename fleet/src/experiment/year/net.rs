//! The forecast's network: two hidden layers with Relu, three outputs, pinball loss.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal};

use super::rows::{INPUTS, OUTPUTS, RowBatch};

const SIZES: [usize; 4] = [INPUTS, 32, 32, OUTPUTS];
pub(super) const LEVELS: [f32; OUTPUTS] = [0.1, 0.5, 0.9];

/// Number of parameters.
pub(super) fn parameters() -> usize {
    SIZES.windows(2).map(|pair| (pair[0] + 1) * pair[1]).sum()
}

/// θ₀: He's normal, the last layer zero.
pub(super) fn initial(seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut weights = Vec::with_capacity(parameters());
    for (layer, pair) in SIZES.windows(2).enumerate() {
        let deviation = if layer == 2 { 0.0 } else { (2.0 / pair[0] as f32).sqrt() };
        let normal = Normal::new(0.0, deviation).expect("a deviation is no negative number");
        weights.extend(normal.sample_iter(&mut rng).take(pair[0] * pair[1]));
        weights.extend(std::iter::repeat_n(0.0, pair[1]));
    }
    weights
}

/// Outputs of all rows.
pub(super) fn output(weights: &[f32], inputs: &[f32]) -> Vec<f32> {
    layers(weights, inputs).pop().unwrap_or_default()
}

fn layers(weights: &[f32], inputs: &[f32]) -> Vec<Vec<f32>> {
    let rows = inputs.len() / INPUTS;
    let mut found: Vec<Vec<f32>> = Vec::with_capacity(3);
    let mut offset = 0;
    for (layer, pair) in SIZES.windows(2).enumerate() {
        let (m, n) = (pair[0], pair[1]);
        let matrix = &weights[offset..offset + m * n];
        let bias = &weights[offset + m * n..offset + (m + 1) * n];
        offset += (m + 1) * n;
        let mut out = vec![0.0; rows * n];
        {
            let from: &[f32] = if layer == 0 { inputs } else { &found[layer - 1] };
            for (row, x) in out.chunks_exact_mut(n).zip(from.chunks_exact(m)) {
                row.copy_from_slice(bias);
                for (value, line) in x.iter().zip(matrix.chunks_exact(n)) {
                    if *value != 0.0 {
                        row.iter_mut().zip(line).for_each(|(sum, weight)| *sum += value * weight);
                    }
                }
                if layer < 2 {
                    row.iter_mut().for_each(|value| *value = value.max(0.0));
                }
            }
        }
        found.push(out);
    }
    found
}

/// Mean pinball loss over rows and levels, and its slope by each output.
pub(super) fn pinball(outputs: &[f32], targets: &[f32]) -> (f32, Vec<f32>) {
    let share = 1.0 / outputs.len().max(1) as f32;
    let mut loss = 0.0f64;
    let slopes = outputs.iter().zip(targets).enumerate().map(|(at, (found, wanted))| {
        let (level, error) = (LEVELS[at % OUTPUTS], wanted - found);
        loss += f64::from((level * error).max((level - 1.0) * error));
        if error > 0.0 { -level * share } else { (1.0 - level) * share }
    });
    let slopes = slopes.collect();
    ((loss * f64::from(share)) as f32, slopes)
}

/// Loss and gradient.
pub(super) fn gradient(weights: &[f32], batch: &RowBatch) -> (f32, Vec<f32>) {
    let found = layers(weights, &batch.inputs);
    let (loss, mut slopes) = pinball(&found[2], &batch.targets);
    let mut gradient = vec![0.0; weights.len()];
    let mut end = weights.len();
    for layer in (0..3).rev() {
        let (m, n) = (SIZES[layer], SIZES[layer + 1]);
        let begin = end - (m + 1) * n;
        let from: &[f32] = if layer == 0 { &batch.inputs } else { &found[layer - 1] };
        let (of_matrix, of_bias) = gradient[begin..end].split_at_mut(m * n);
        for (slope, x) in slopes.chunks_exact(n).zip(from.chunks_exact(m)) {
            for (value, line) in x.iter().zip(of_matrix.chunks_exact_mut(n)) {
                if *value != 0.0 {
                    line.iter_mut().zip(slope).for_each(|(sum, slope)| *sum += value * slope);
                }
            }
            of_bias.iter_mut().zip(slope).for_each(|(sum, slope)| *sum += slope);
        }
        if layer > 0 {
            let matrix = &weights[begin..begin + m * n];
            let mut turned = vec![0.0; m * n];
            for i in 0..m {
                for j in 0..n {
                    turned[j * m + i] = matrix[i * n + j];
                }
            }
            let mut before = vec![0.0; from.len()];
            for ((row, slope), x) in
                before.chunks_exact_mut(m).zip(slopes.chunks_exact(n)).zip(from.chunks_exact(m))
            {
                for (slope, line) in slope.iter().zip(turned.chunks_exact(m)) {
                    row.iter_mut().zip(line).for_each(|(sum, weight)| *sum += slope * weight);
                }
                row.iter_mut().zip(x).for_each(|(sum, x)| {
                    if *x <= 0.0 {
                        *sum = 0.0;
                    }
                });
            }
            slopes = before;
        }
        end = begin;
    }
    (loss, gradient)
}

/// θ_new after some epochs over the whole batch, and the loss before them.
pub(super) fn epochs(
    weights: &[f32],
    batch: &RowBatch,
    epochs: u32,
    learning_rate: f32,
    momentum: f32,
) -> (f32, Vec<f32>) {
    let mut now = weights.to_vec();
    let mut velocity = vec![0.0; weights.len()];
    let mut first = 0.0;
    for epoch in 0..epochs {
        let (loss, slopes) = gradient(&now, batch);
        if epoch == 0 {
            first = loss;
        }
        for ((weight, v), slope) in now.iter_mut().zip(&mut velocity).zip(&slopes) {
            *v = momentum * *v + slope;
            *weight -= learning_rate * *v;
        }
    }
    (first, now)
}
