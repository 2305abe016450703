//! The paper's draw: k times from all nodes.

use rand::{Rng, RngExt};

/// The distinct nodes among k independent draws from ϱ; node i is among them with probability
/// 1 − (1 − ϱᵢ)ᵏ.
pub(super) fn draw(probabilities: &[f64], k: usize, rng: &mut impl Rng) -> Vec<usize> {
    let cumulative: Vec<f64> = probabilities
        .iter()
        .scan(0.0, |sum, probability| {
            *sum += probability;
            Some(*sum)
        })
        .collect();
    let Some(&total) = cumulative.last() else { return Vec::new() };
    let mut drawn: Vec<usize> = (0..k)
        .map(|_| {
            let point = rng.random::<f64>() * total;
            cumulative.partition_point(|sum| *sum <= point).min(probabilities.len() - 1)
        })
        .collect();
    drawn.sort_unstable();
    drawn.dedup();
    drawn
}
