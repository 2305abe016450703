//! Twins: nodes whose answers have more in common than their data can.

use super::evidence::normalised;
use super::signature::{BITS, Signature, signature};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Innovations whose signatures differ in no more bits are one and the same, rounded otherwise: an angle below 0.08. Those
/// of two households whose loads are flat at the same time come as near as 30.
const COPIED_BITS_MAX: u32 = 12;
/// A pair is alike in a round if its signatures differ in so many standard deviations less than those of the median pair: of
/// the pairs of the round, and at least those of 512 tosses.
const DEVIATIONS: f64 = 6.0;
/// Pairs of a round that are nearer than the low one, and its distance from the median in standard deviations of a normal law.
const LOW_SHARE: f64 = 0.1;
const LOW_DEVIATIONS: f64 = 1.28;
/// A pair that is no copy must be nearer to each other than to any third by so many bits.
const APART_BITS_MIN: u32 = 34;
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
/// all pairs, from which a pair is told apart. Nodes that are as near to a third as to each other have similar data, and are no
/// twins unless they are copies.
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
        let alike = alike(&shown);
        let answered = |node: u32| shown.binary_search_by_key(&(node as usize), |shown| shown.node).is_ok();
        self.pairs.retain(|pair, sightings| {
            if answered(pair.0) && answered(pair.1) {
                sightings.alike = decay * sightings.alike + f64::from(u8::from(alike.contains(pair)));
                sightings.rounds = decay * sightings.rounds + 1.0;
            }
            // A pair that was alike once by chance is soon forgotten.
            sightings.alike > 0.1 && sightings.alike >= 0.1 * sightings.rounds
        });
        for pair in alike {
            self.pairs.entry(pair).or_insert(PairSightings { alike: 1.0, rounds: 1.0 });
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

/// Pairs that are alike in one round.
fn alike(shown: &[ShownInnovation]) -> BTreeSet<(u32, u32)> {
    let limit = limit(shown);
    let near = |(at, one): (usize, &ShownInnovation)| -> Vec<(usize, u32, bool)> {
        let pair = |(other, shown): (usize, &ShownInnovation)| {
            let distance = one.own.distance(&shown.own);
            let copied = one.whole.distance(&shown.whole) <= COPIED_BITS_MAX;
            (distance < limit || copied).then_some((other, distance, copied))
        };
        shown.iter().enumerate().filter(|(other, _)| *other != at).filter_map(pair).collect()
    };
    let near: Vec<Vec<(usize, u32, bool)>> = shown.par_iter().enumerate().map(near).collect();
    // Not alike by intent: who is as near to a third as to each other.
    let stands_out = |one: usize, other: usize, distance: u32| {
        near[one].iter().all(|(third, to_third, _)| *third == other || *to_third > distance + APART_BITS_MIN)
    };
    let mut alike = BTreeSet::new();
    for (one, others) in near.iter().enumerate() {
        for &(other, distance, copied) in others.iter().filter(|(other, ..)| *other > one) {
            if copied || stands_out(one, other, distance) && stands_out(other, one, distance) {
                alike.insert((shown[one].node as u32, shown[other].node as u32));
            }
        }
    }
    alike
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
///
/// Bits are independent only where gradients spread over many directions. Those of households lie in few, in which two are
/// near for hours by chance: there pairs scatter by several times what tosses would.
fn limit(shown: &[ShownInnovation]) -> u32 {
    // Neighbours at several steps: a few pairs of every node.
    let mut distances: Vec<u32> = Vec::with_capacity(8 * shown.len());
    for step in 1..=8.min(shown.len() - 1) {
        for at in 0..shown.len() {
            distances.push(shown[at].own.distance(&shown[(at + step) % shown.len()].own));
        }
    }
    distances.sort_unstable();
    let at = |share: f64| f64::from(distances[(share * (distances.len() - 1) as f64) as usize]);
    let (median, low) = (at(0.5), at(LOW_SHARE));
    let deviation = (f64::from(BITS).sqrt() / 2.0).max((median - low) / LOW_DEVIATIONS);
    (median - DEVIATIONS * deviation).max(0.0) as u32
}
