//! ζ: how much worse each node's data are.

use std::ops::Range;

use rand::seq::SliceRandom;

use super::deal::Deal;
use super::{Purpose, generator};
use crate::corruption::Corruption;
use crate::data::{Answers, Pool};
use crate::experiment::setup::{AsPublished, Setup};

/// The exponent of the power law in the published code, and where on it the smallest and the largest node are.
const EXPONENT: f64 = 1.659_113_328_99;
const QUANTILES: (f64, f64) = (0.3, 0.99);

/// Classes that the worst node sees.
const CLASSES_MIN: u32 = 2;

/// ζ by node.
pub(super) fn zetas(pool: &Pool, setup: &Setup, measured: &Deal, classes: Option<&[Vec<u32>]>) -> Vec<f64> {
    let nodes = setup.nodes;
    match setup.corruption {
        Corruption::None => vec![0.0; nodes],
        // The published code takes the share itself, and less is worse.
        Corruption::Quantity => {
            let all = measured.all(1).len() as f64;
            (0..nodes).map(|node| -(measured.of(node, 1).len() as f64) / all).collect()
        }
        Corruption::Heterogeneity => {
            let count = f64::from(class_count(pool));
            classes.unwrap_or_default().iter().map(|classes| 1.0 - classes.len() as f64 / count).collect()
        }
        Corruption::NonStationary => {
            let mut zetas = ladder(setup);
            // Where their noise ends up.
            zetas[0] = setup.level;
            if nodes > 1 {
                zetas[nodes - 1] = 0.0;
            }
            zetas
        }
        Corruption::FeatureNoise
        | Corruption::LabelNoise
        | Corruption::MissingValues
        | Corruption::Unstable
        | Corruption::StrategicRandom
        | Corruption::StrategicPoisson => ladder(setup),
    }
}

/// Evenly from 0 to the level in the paper; the published code stops one step short of it.
fn ladder(setup: &Setup) -> Vec<f64> {
    let steps = match setup.as_published {
        AsPublished::Paper => setup.nodes.saturating_sub(1).max(1),
        AsPublished::Code => setup.nodes,
    };
    (0..setup.nodes).map(|node| setup.level * node as f64 / steps as f64).collect()
}

/// The classes each node sees: all of them at node 0, falling evenly to [`CLASSES_MIN`] at the last if the level is 1, and
/// less far if it is lower.
pub(super) fn classes(pool: &Pool, setup: &Setup) -> Option<Vec<Vec<u32>>> {
    if setup.corruption != Corruption::Heterogeneity {
        return None;
    }
    let count = class_count(pool);
    let fewest = CLASSES_MIN.min(count);
    let span = f64::from(count - fewest) * setup.level;
    let last = setup.nodes.saturating_sub(1).max(1) as f64;
    let of = |node: usize| {
        let seen = count - (span * node as f64 / last).round() as u32;
        let mut classes: Vec<u32> = (0..count).collect();
        // The published code always takes the first ones; then nobody but the best would see the last.
        if setup.as_published == AsPublished::Paper {
            classes.shuffle(&mut generator(setup.seed, Purpose::Classes, node, 0));
        }
        classes.truncate(seen as usize);
        classes.sort_unstable();
        classes
    };
    Some((0..setup.nodes).map(of).collect())
}

fn class_count(pool: &Pool) -> u32 {
    match &pool.answers {
        Answers::Classes { count, .. } => *count,
        Answers::Values { .. } => 0,
    }
}

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

/// Batches by the power law with the given mean, each at least 1: rounded down, then the largest remainders up.
pub(super) fn power_law_sizes(mean: usize, nodes: usize, level: f64) -> Vec<usize> {
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

/// Parts of 0..`length` by the power law as the published code cuts them: sizes are rounded up, the first sample is left
/// out, so the last parts are cut short where the samples end; who would get none gets the first sample.
pub(super) fn power_law_parts(length: usize, nodes: usize, level: f64) -> Vec<Range<usize>> {
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
