//! Our draw: the k nodes to which most is owed.

use rand::{Rng, RngExt};

/// Each round node i gains its inclusion probability πᵢ; the k nodes with most credit are drawn, ties
/// by the generator, and pay 1. Initial credits are uniform on [0, 1), so that no node is favoured by
/// its number.
pub(super) fn draw(
    credits: &mut Vec<f64>,
    probabilities: &[f64],
    k: usize,
    rng: &mut impl Rng,
) -> Vec<usize> {
    while credits.len() < probabilities.len() {
        credits.push(rng.random());
    }
    let inclusion = inclusion_probabilities(probabilities, k);
    let mut ranking: Vec<(f64, u64, usize)> = inclusion
        .iter()
        .enumerate()
        .map(|(node, probability)| {
            credits[node] += probability;
            (credits[node], rng.random(), node)
        })
        .collect();
    ranking.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut drawn: Vec<usize> = ranking.iter().take(k).map(|place| place.2).collect();
    drawn.sort_unstable();
    for &node in &drawn {
        credits[node] -= 1.0;
    }
    drawn
}

/// πᵢ = min(1, c·ϱᵢ) with c such that Σπᵢ = k: what a sampler of k distinct nodes can give each.
///
/// Where probabilities underflowed to zero and too little is left to share, those nodes share the rest
/// equally.
pub fn inclusion_probabilities(probabilities: &[f64], k: usize) -> Vec<f64> {
    let n = probabilities.len();
    if k >= n {
        return vec![1.0; n];
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| probabilities[b].total_cmp(&probabilities[a]));
    let mut inclusion = vec![0.0; n];
    // Sums from the small end, so that tiny probabilities are not lost beside large ones.
    let mut tails = vec![0.0; n + 1];
    for place in (0..n).rev() {
        tails[place] = tails[place + 1] + probabilities[order[place]];
    }
    for place in 0..n {
        let left = k - place.min(k);
        if left == 0 {
            break;
        }
        let (tail, first) = (tails[place], probabilities[order[place]]);
        if tail == 0.0 {
            let share = left as f64 / (n - place) as f64;
            order[place..].iter().for_each(|&node| inclusion[node] = share);
            break;
        }
        if left as f64 * first < tail {
            order[place..]
                .iter()
                .for_each(|&node| inclusion[node] = left as f64 * (probabilities[node] / tail));
            break;
        }
        inclusion[order[place]] = 1.0;
    }
    inclusion
}
