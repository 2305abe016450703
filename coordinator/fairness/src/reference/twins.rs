//! Twins: nodes whose answers have more in common than their data can.

use super::evidence::normalised;
use super::signature::{BITS, Signature, signature};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Innovations whose signatures differ in no more bits are one and the same with a little noise: an angle below 0.2.
const COPIED_BITS_MAX: u32 = 33;
/// A pair is alike in a round if its signatures differ in so many standard deviations less than those of the median pair.
const DEVIATIONS: f64 = 6.0;
/// Sightings, decayed, from which a pair are twins.
const SIGHTINGS_MIN: f64 = 3.0;
/// The share of their common rounds in which twins are alike.
const SHARE_MIN: f64 = 0.5;
/// Nodes below which no median of pairs tells what is common.
const NODES_MIN: usize = 4;

/// Pairs of nodes that were seen to answer alike.
///
/// Compared is what is new in two answers of one round, without each node's own mean. At fixed reference weights the noise of
/// two nodes with data of their own is independent, whatever their data have in common on average. What nodes have in
/// common in one round (the day, the weather) is their mean, and is taken out too; what is left of it moves the median of
/// all pairs, from which a pair is told apart. Copies are alike whatever others do.
///
/// Every pair of a round is compared, N²/2 of them, by 64 bytes each: at 10,000 nodes a fraction of the time that reading
/// their gradients takes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Twins {
    pairs: BTreeMap<(u32, u32), PairSightings>,
}

/// Rounds since a pair was first alike, and those in which it was, decayed.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
struct PairSightings {
    alike: f64,
    rounds: f64,
}

impl PairSightings {
    fn are_twins(self) -> bool {
        self.alike >= SIGHTINGS_MIN && self.alike >= SHARE_MIN * self.rounds
    }
}

impl Twins {
    /// Adds the innovations of one round, nodes ascending.
    pub(super) fn observe(&mut self, innovations: &[(usize, &[f32])], decay: f64) {
        if innovations.len() < NODES_MIN {
            return;
        }
        let shown = shown(innovations);
        let limit = limit(&shown);
        let of = |node: u32| shown.binary_search_by_key(&(node as usize), |shown| shown.node).ok();
        self.pairs.retain(|(i, j), sightings| {
            if let (Some(i), Some(j)) = (of(*i), of(*j)) {
                let alike = shown[i].is_like(&shown[j], limit);
                sightings.alike = decay * sightings.alike + f64::from(u8::from(alike));
                sightings.rounds = decay * sightings.rounds + 1.0;
            }
            // A pair that was alike once by chance is soon forgotten.
            sightings.alike > 0.1 && sightings.alike >= 0.1 * sightings.rounds
        });
        for (at, one) in shown.iter().enumerate() {
            for other in shown[at + 1..].iter().filter(|other| one.is_like(other, limit)) {
                let seen = PairSightings { alike: 1.0, rounds: 1.0 };
                self.pairs.entry((one.node as u32, other.node as u32)).or_insert(seen);
            }
        }
    }

    /// The twins of every node, itself among them, ascending; a node without twins is alone in its group.
    pub fn groups(&self, nodes: usize) -> Vec<Vec<usize>> {
        let mut leader: Vec<usize> = (0..nodes).collect();
        for (i, j) in self.pairs() {
            if j < nodes {
                let (one, other) = (leader[i].min(leader[j]), leader[i].max(leader[j]));
                leader.iter_mut().filter(|leads| **leads == other).for_each(|leads| *leads = one);
            }
        }
        let mut groups = vec![Vec::new(); nodes];
        for (node, leads) in leader.iter().enumerate() {
            groups[*leads].push(node);
        }
        groups.retain(|group| !group.is_empty());
        groups
    }

    /// Pairs that are twins, ascending.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let twins = self.pairs.iter().filter(|(_, sightings)| sightings.are_twins());
        twins.map(|((i, j), _)| (*i as usize, *j as usize))
    }
}

/// One node's innovation in a round, by its signatures.
struct ShownInnovation {
    node: usize,
    /// As it is.
    whole: Signature,
    /// Without what all have in common in this round.
    own: Signature,
}

impl ShownInnovation {
    fn is_like(&self, other: &Self, limit: u32) -> bool {
        self.own.distance(&other.own) < limit || self.whole.distance(&other.whole) <= COPIED_BITS_MAX
    }
}

fn shown(innovations: &[(usize, &[f32])]) -> Vec<ShownInnovation> {
    let dimension = innovations.first().map_or(0, |(_, innovation)| innovation.len());
    let mut common = vec![0.0f32; dimension];
    for (_, innovation) in innovations {
        common.iter_mut().zip(*innovation).for_each(|(common, value)| *common += value);
    }
    let common = normalised(common).unwrap_or_else(|| vec![0.0; dimension]);
    let signatures = |(node, innovation): &(usize, &[f32])| {
        let along: f32 = innovation.iter().zip(&common).map(|(value, common)| value * common).sum();
        let own = innovation.iter().zip(&common).map(|(value, common)| value - along * common);
        ShownInnovation { node: *node, whole: signature(innovation.iter().copied()), own: signature(own) }
    };
    innovations.par_iter().map(signatures).collect()
}

/// The distance below which a pair is alike: the median of all pairs, or of a sample of them, less the deviations.
fn limit(shown: &[ShownInnovation]) -> u32 {
    // Neighbours at several steps: a few pairs of every node.
    let mut distances: Vec<u32> = Vec::with_capacity(8 * shown.len());
    for step in 1..=8.min(shown.len() - 1) {
        for at in 0..shown.len() {
            distances.push(shown[at].own.distance(&shown[(at + step) % shown.len()].own));
        }
    }
    let middle = distances.len() / 2;
    let (_, median, _) = distances.select_nth_unstable(middle);
    let deviation = f64::from(BITS).sqrt() / 2.0;
    (f64::from(*median) - DEVIATIONS * deviation).max(0.0) as u32
}
