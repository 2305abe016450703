//! Batch sizes by a power law, for nodes that have few or many samples.

use std::ops::Range;

/// The exponent of the power law in the published code, and where on it the smallest and the largest node are.
const EXPONENT: f64 = 1.659_113_328_99;
const QUANTILES: (f64, f64) = (0.3, 0.99);

/// Shares of all samples, rising, with sum 1: N even steps between the 0.3 and 0.99 quantiles of the power law, whose quantile
/// function is q^(1/a); mixed with equal shares where the level is below 1.
fn power_law_shares(nodes: usize, level: f64) -> Vec<f64> {
    let quantile = |q: f64| q.powf(1.0 / EXPONENT);
    let (low, high) = (quantile(QUANTILES.0), quantile(QUANTILES.1));
    let last = nodes.saturating_sub(1).max(1) as f64;
    let places: Vec<f64> = (0..nodes).map(|node| low + (high - low) * node as f64 / last).collect();
    let sum: f64 = places.iter().sum();
    places.iter().map(|place| level * place / sum + (1.0 - level) / nodes as f64).collect()
}

/// Batch sizes by the power law with the given mean, each at least 1: rounded down, then the largest remainders up.
pub(crate) fn power_law_sizes(mean: usize, nodes: usize, level: f64) -> Vec<usize> {
    let total = mean * nodes;
    let wanted: Vec<f64> = power_law_shares(nodes, level).iter().map(|share| share * total as f64).collect();
    let mut sizes: Vec<usize> = wanted.iter().map(|wanted| wanted.floor().max(1.0) as usize).collect();
    let mut by_remainder: Vec<usize> = (0..nodes).collect();
    let remainder = |node: usize| wanted[node] - wanted[node].floor();
    // Of equal remainders the larger node's first, so that sizes keep rising.
    by_remainder.sort_by(|a, b| remainder(*b).total_cmp(&remainder(*a)).then(b.cmp(a)));
    let short = total.saturating_sub(sizes.iter().sum());
    by_remainder.iter().cycle().take(short).for_each(|node| sizes[*node] += 1);
    sizes.sort_unstable();
    sizes
}

/// Parts of 0..`length` by the power law as the published code cuts them: sizes are rounded up and the first sample is left
/// out, so the last parts are cut short where the samples end; a node that would get none gets the first sample.
pub(crate) fn power_law_parts(length: usize, nodes: usize, level: f64) -> Vec<Range<usize>> {
    let total = (length / nodes * nodes) as f64;
    let mut next = 1;
    let mut parts = Vec::with_capacity(nodes);
    for share in power_law_shares(nodes, level) {
        let end = next + (share * total).ceil() as usize;
        let part = next.min(length)..end.min(length);
        parts.push(if part.is_empty() { 0..1 } else { part });
        next = end;
    }
    parts
}
