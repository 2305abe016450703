//! The coalitions that a game is sampled at.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::node_set::NodeSet;

/// The most coalitions that are enumerated: above it they are sampled, whatever is asked for.
const ENUMERATED_MAX: u64 = 1 << 20;

/// A sampled coalition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampledCoalition {
    /// Its members.
    pub members: NodeSet,
    /// Its weight in the regression: the kernel's weight of its size, shared by the samples of that size.
    pub weight: f64,
    /// The number of its pair: a coalition and its complement are sampled together.
    pub pair: usize,
}

/// About `wanted` coalitions of `nodes` nodes, neither none nor all of them, each beside its complement; all there are
/// if `wanted` is as many.
///
/// Sizes are shared out as the Shapley kernel weighs them, 1/(s(N−s)); within a size, nodes are dealt out from random
/// orders, so that all take part equally often. Sizes of which every coalition would be drawn are enumerated.
pub fn sampled_pairs(nodes: usize, wanted: usize, rng: &mut ChaCha8Rng) -> Vec<SampledCoalition> {
    let sizes: Vec<usize> = (1..=nodes / 2).collect();
    let counts = pair_counts(nodes, &sizes, wanted.div_ceil(2));
    let mut sampled = Vec::new();
    let mut pair = 0;
    for (&size, &count) in sizes.iter().zip(&counts) {
        let halves = 2 * size == nodes;
        let drawn = if count as u64 >= pairs_of(nodes, size) {
            enumerated(nodes, size)
        } else {
            dealt(nodes, size, count, rng)
        };
        // Both coalitions of a pair have this size where it is half of all; otherwise one has the mirrored size.
        let weight = kernel(nodes, size) / (drawn.len() * if halves { 2 } else { 1 }).max(1) as f64;
        for members in drawn {
            sampled.push(SampledCoalition { members, weight, pair });
            sampled.push(SampledCoalition { members: members.complement(nodes), weight, pair });
            pair += 1;
        }
    }
    sampled
}

/// The kernel's weight of all coalitions of a size.
fn kernel(nodes: usize, size: usize) -> f64 {
    1.0 / (size * (nodes - size)) as f64
}

/// Pairs by size, at least one each, and no more than there are.
fn pair_counts(nodes: usize, sizes: &[usize], pairs: usize) -> Vec<usize> {
    let most: Vec<u64> = sizes.iter().map(|size| pairs_of(nodes, *size)).collect();
    // Both sizes of a pair count; the middle one is its own mirror.
    let share = |size: usize| kernel(nodes, size) * if 2 * size == nodes { 1.0 } else { 2.0 };
    let mut counts = vec![0usize; sizes.len()];
    let mut open: Vec<usize> = (0..sizes.len()).collect();
    let mut left = pairs;
    // Sizes that are small enough to be enumerated leave the rest of their share to the others.
    loop {
        let total: f64 = open.iter().map(|at| share(sizes[*at])).sum();
        let pairs = left as f64;
        let part = |at: usize| (pairs * share(sizes[at]) / total).round() as u64;
        let (full, rest): (Vec<usize>, Vec<usize>) = open.iter().partition(|at| part(**at) >= most[**at]);
        for &at in &full {
            counts[at] = most[at] as usize;
            left = left.saturating_sub(counts[at]);
        }
        if full.is_empty() || rest.is_empty() {
            rest.iter().for_each(|at| counts[*at] = part(*at).max(1) as usize);
            return counts;
        }
        open = rest;
    }
}

/// Pairs of a coalition of this size and its complement, or the bound above which they are not enumerated.
fn pairs_of(nodes: usize, size: usize) -> u64 {
    let mut count: u64 = 1;
    for chosen in 0..size as u64 {
        count = match count.checked_mul(nodes as u64 - chosen) {
            Some(product) => product / (chosen + 1),
            None => return u64::MAX,
        };
        if count > ENUMERATED_MAX {
            return u64::MAX;
        }
    }
    if 2 * size == nodes { count / 2 } else { count }
}

/// One of each pair of coalitions of a size; of two halves that with node 0.
fn enumerated(nodes: usize, size: usize) -> Vec<NodeSet> {
    let mut found = Vec::new();
    let mut chosen: Vec<usize> = (0..size).collect();
    loop {
        if 2 * size < nodes || chosen[0] == 0 {
            found.push(chosen.iter().copied().collect());
        }
        let Some(at) = (0..size).rev().find(|at| chosen[*at] < nodes - size + at) else { return found };
        chosen[at] += 1;
        for next in at + 1..size {
            chosen[next] = chosen[next - 1] + 1;
        }
    }
}

/// `count` coalitions of a size, dealt out from random orders of all nodes.
fn dealt(nodes: usize, size: usize, count: usize, rng: &mut ChaCha8Rng) -> Vec<NodeSet> {
    let mut order: Vec<usize> = (0..nodes).collect();
    let mut found = Vec::with_capacity(count);
    while found.len() < count {
        order.shuffle(rng);
        // Two halves of one order would be the same pair.
        let most = if 2 * size == nodes { 1 } else { count - found.len() };
        let hands = order.chunks_exact(size).map(|hand| hand.iter().copied().collect::<NodeSet>());
        found.extend(hands.take(most));
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::SeedableRng;

    use super::*;

    fn sampled(nodes: usize, wanted: usize) -> Vec<SampledCoalition> {
        sampled_pairs(nodes, wanted, &mut ChaCha8Rng::seed_from_u64(1))
    }

    #[test]
    fn small_games_are_enumerated_with_the_kernels_weights() {
        for nodes in 2..9 {
            let all = sampled(nodes, 1 << nodes);
            let distinct: BTreeSet<NodeSet> = all.iter().map(|one| one.members).collect();
            assert_eq!((all.len(), distinct.len()), ((1 << nodes) - 2, (1 << nodes) - 2), "{nodes} nodes");
            for one in &all {
                let size = one.members.len();
                let of_size = all.iter().filter(|other| other.members.len() == size).count() as f64;
                assert!((one.weight - kernel(nodes, size) / of_size).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn coalitions_come_with_their_complements() {
        let found = sampled(30, 300);
        assert!((290..=320).contains(&found.len()), "{}", found.len());
        for pair in found.chunks_exact(2) {
            assert_eq!((pair[0].members.complement(30), pair[0].pair), (pair[1].members, pair[1].pair));
        }
        let sizes: BTreeSet<usize> = found.iter().map(|one| one.members.len()).collect();
        assert_eq!(sizes, (1..30).collect());
    }

    #[test]
    fn all_nodes_take_part_about_equally_often() {
        let found = sampled(12, 400);
        let times: Vec<usize> =
            (0..12).map(|node| found.iter().filter(|one| one.members.contains(node)).count()).collect();
        // A node is in exactly one coalition of each pair.
        assert!(times.iter().all(|count| *count == found.len() / 2), "{times:?}");
        let small = |node: usize| {
            found.iter().filter(|one| one.members.len() <= 5 && one.members.contains(node)).count()
        };
        let small: Vec<usize> = (0..12).map(small).collect();
        assert!(small.iter().max().zip(small.iter().min()).is_some_and(|(most, least)| most - least <= 25));
    }
}
