//! The published code's draw: k times, each time from the nodes not drawn yet.

use rand::{Rng, RngExt};

/// Departs from the paper as its published code does: k distinct nodes by successive draws from ϱ,
/// renormalised over the nodes left. Inclusion then differs from qᵢ.
///
/// Done with exponential clocks (Efraimidis and Spirakis 2006): the clock of node i rings after
/// E/ϱᵢ, and the first k to ring have the law of successive draws. Nodes whose ϱ underflowed to
/// zero come last, in random order.
pub(super) fn draw(probabilities: &[f64], k: usize, rng: &mut impl Rng) -> Vec<usize> {
    let mut clocks: Vec<(f64, f64, usize)> = probabilities
        .iter()
        .enumerate()
        .map(|(node, probability)| {
            let wait = -(-rng.random::<f64>()).ln_1p();
            (wait / probability, wait, node)
        })
        .collect();
    let k = k.min(clocks.len());
    clocks.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut drawn: Vec<usize> = clocks[..k].iter().map(|clock| clock.2).collect();
    drawn.sort_unstable();
    drawn
}
