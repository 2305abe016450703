//! Twins: nodes whose answers have more in common than their data can.

use super::signature::{BITS, Signature};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
/// two nodes with data of their own is independent, whatever their data have in common on average; what all have in
/// common in the round (the weather) moves the median of all pairs, from which a pair is told apart.
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
    pub(super) fn observe(&mut self, shown: &[(usize, Signature)], decay: f64) {
        if shown.len() < NODES_MIN {
            return;
        }
        let limit = limit(shown);
        let alike = |(i, j): &(u32, u32)| {
            let of = |node: u32| shown.binary_search_by_key(&(node as usize), |(node, _)| *node).ok();
            Some(shown[of(*i)?].1.distance(&shown[of(*j)?].1) < limit)
        };
        self.pairs.retain(|pair, sightings| {
            if let Some(alike) = alike(pair) {
                sightings.alike = decay * sightings.alike + f64::from(u8::from(alike));
                sightings.rounds = decay * sightings.rounds + 1.0;
            }
            // A pair that was alike once by chance is soon forgotten.
            sightings.alike > 0.1 && sightings.alike >= 0.1 * sightings.rounds
        });
        for (at, (i, a)) in shown.iter().enumerate() {
            for (j, b) in &shown[at + 1..] {
                if a.distance(b) < limit {
                    let seen = PairSightings { alike: 1.0, rounds: 1.0 };
                    self.pairs.entry((*i as u32, *j as u32)).or_insert(seen);
                }
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

    /// Of every node: 1 divided by the size of its group.
    pub fn shares(&self, nodes: usize) -> Vec<f64> {
        let mut shares = vec![1.0; nodes];
        for group in self.groups(nodes) {
            for node in &group {
                shares[*node] = 1.0 / group.len() as f64;
            }
        }
        shares
    }
}

/// The distance below which a pair is alike: the median of all pairs, or of a sample of them, less the deviations.
fn limit(shown: &[(usize, Signature)]) -> u32 {
    // Neighbours at several steps: a few pairs of every node.
    let mut distances: Vec<u32> = Vec::with_capacity(8 * shown.len());
    for step in 1..=8.min(shown.len() - 1) {
        for at in 0..shown.len() {
            distances.push(shown[at].1.distance(&shown[(at + step) % shown.len()].1));
        }
    }
    let middle = distances.len() / 2;
    let (_, median, _) = distances.select_nth_unstable(middle);
    let deviation = f64::from(BITS).sqrt() / 2.0;
    (f64::from(*median) - DEVIATIONS * deviation).max(0.0) as u32
}
