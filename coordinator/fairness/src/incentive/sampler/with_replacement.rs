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
    // A node without a probability is never drawn, not even by rounding.
    let Some(last) = probabilities.iter().rposition(|probability| *probability > 0.0) else {
        return Vec::new();
    };
    let mut drawn: Vec<usize> = (0..k)
        .map(|_| {
            let point = rng.random::<f64>() * cumulative[last];
            cumulative.partition_point(|sum| *sum <= point).min(last)
        })
        .collect();
    drawn.sort_unstable();
    drawn.dedup();
    drawn
}
