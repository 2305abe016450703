//! Our draw: the k nodes with the highest credit.

use rand::{Rng, RngExt};

/// Each round node i gains its inclusion probability πᵢ; the k nodes with most credit are drawn, ties
/// by the generator, and pay 1. Initial credits are uniform on [0, 1), so that no node is favoured by
/// its number. Credits follow πᵢ and draws follow credits, so that a node's share is πᵢ
/// of the rounds, as with the other samplers, but with hardly any luck; see [`wait_bound`].
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
    let mut ranking: Vec<(f64, u64, usize)> = Vec::with_capacity(inclusion.len());
    for (node, probability) in inclusion.into_iter().enumerate().filter(|(_, probability)| *probability > 0.0)
    {
        credits[node] += probability;
        ranking.push((credits[node], rng.random(), node));
    }
    ranking.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut drawn: Vec<usize> = ranking.iter().take(k).map(|place| place.2).collect();
    drawn.sort_unstable();
    for &node in &drawn {
        credits[node] -= 1.0;
    }
    drawn
}

/// πᵢ = min(1, c·ϱᵢ) with c such that Σπᵢ = k: the share of the rounds that a sampler of k distinct
/// nodes can give each. With fewer than k nodes of positive probability, 1 for each of them.
pub fn inclusion_probabilities(probabilities: &[f64], k: usize) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b]));
    // tails[i]: what the i least likely have together, summed from the small end so that it is precise.
    let tails: Vec<f64> = order
        .iter()
        .scan(0.0, |sum, &node| {
            *sum += probabilities[node];
            Some(*sum)
        })
        .collect();
    let mut inclusion = vec![0.0; probabilities.len()];
    let mut left = k;
    for place in (0..order.len()).rev() {
        let likeliest = probabilities[order[place]];
        if left == 0 || likeliest == 0.0 {
            break;
        }
        if left as f64 * likeliest < tails[place] {
            for &node in &order[..=place] {
                inclusion[node] = left as f64 * (probabilities[node] / tails[place]);
            }
            break;
        }
        inclusion[order[place]] = 1.0;
        left -= 1;
    }
    inclusion
}

/// B such that a node waits at most B/πᵢ rounds between two draws of the credit sampler, k of N nodes a
/// round: B = b(k) + b(N−k), b(k) = (N−k+1)/N · (k/2 + H_{N−k+1} − 3/2), H the harmonic numbers.
/// With one draw a round that is H_{N−1}. Where πᵢ changes from round to round, the sum of πᵢ over
/// the wait is at most B. Simulated waits stay below 2/πᵢ.
///
/// # Proof
/// Gains and payments balance, so the mean credit m never changes. Let M = m + b(k),
/// v_j = s(k/2 + H_s − 3/2) with s = j−k+1, and T_j the sum of the j largest credits. Claim: after
/// each round no credit exceeds M, and T_j ≤ jM − v_j for k < j ≤ N. It holds for credits in [0, 1], and
/// for j = N it says Nm = Nm. Suppose it holds, and let a round add π and draw E.
/// (i) Who is drawn does not rise, as π ≤ 1. Who is not has, before payment, at most as much as each of
/// the k drawn, so k+1 times its credit is at most T_{k+1} + k ≤ (k+1)M − v_{k+1} + k = (k+1)M.
/// (ii) Let S be the top j afterwards, d = |E∖S|, r = |S∖E| = j−k+d. If d = 0, S gained at most k and
/// paid k. Else S∪E gained at most k and paid k, so it holds at most T_{j+d}; each of the d in E∖S still
/// has the mean of S∖E less 1; and S∩E holds at most (j−r)M by (i). Solved for S:
/// T_j' ≤ jM − r(v_{j+d} − d)/(r+d), and r(v_{j+d} − d)/(r+d) ≥ v_j: with equality for d = 1, and for
/// d > 1 because v_{j+d} ≥ (s+d)·d/2.
/// So credits stay below m + b(k). Exchanging roles (a node not drawn loses what it gained, N−k of them
/// a round) they stay above m − b(N−k). A node starts to wait with at least the latter and gains πᵢ a
/// round until the former. ∎
///
/// (That greedy rules keep such credits within O(log N) for every k is a theorem of Kuszmaul, SODA 2020;
/// its constants are not explicit.)
pub fn wait_bound(nodes: usize, k: usize) -> f64 {
    if k == 0 || k >= nodes {
        return 0.0;
    }
    let harmonic = |n: usize| (1..=n).map(|i| 1.0 / i as f64).sum::<f64>();
    let excess = |k: usize| {
        let rest = nodes - k + 1;
        rest as f64 / nodes as f64 * (k as f64 / 2.0 + harmonic(rest) - 1.5)
    };
    excess(k) + excess(nodes - k)
}
