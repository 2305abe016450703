//! The published code's draw: k times, each time from the nodes not drawn yet.

use rand::{Rng, RngExt};

/// Departs from the paper as its published code does: k distinct nodes by successive draws from ϱ,
/// renormalised over the nodes left. Inclusion then differs from qᵢ.
///
/// Done with exponential clocks (Efraimidis and Spirakis 2006): the clock of node i rings after
/// E/ϱᵢ, E exponential, and the first k to ring have the law of successive draws.
pub(super) fn draw(probabilities: &[f64], k: usize, rng: &mut impl Rng) -> Vec<usize> {
    let mut clocks: Vec<(f64, usize)> = probabilities
        .iter()
        .map(|probability| -(-rng.random::<f64>()).ln_1p() / probability)
        .zip(0..)
        .filter(|(_, node)| probabilities[*node] > 0.0)
        .collect();
    clocks.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut drawn: Vec<usize> = clocks.into_iter().take(k).map(|(_, node)| node).collect();
    drawn.sort_unstable();
    drawn
}
