//! The debt of twins: what an owner was paid under several names before they were recognised as one.

use serde::{Deserialize, Serialize};

/// The share of a gain that remains after a round: recognition takes some rounds, and no honest node may lose more than some
/// rounds' odds by a false alarm.
const GAIN_DECAY: f64 = 0.95;

/// By node: credit gained under its own name alone, of late.
///
/// # Formula
/// gᵢ ← 0.95·gᵢ + πᵢ in each round in which node i has no twin. When a group G is recognised, its owner should have gained
/// max_G gᵢ: name i owes gᵢ·(1 − max_G gⱼ / Σ_G gⱼ), and gᵢ ← 0.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct TwinDebt {
    gains: Vec<f64>,
    /// Whether a node's odds were those of a group in the last draw.
    shared: Vec<bool>,
}

impl TwinDebt {
    /// Adds the gains π of a round; returns what the names of each group owe, by node ascending within the group.
    pub(crate) fn settle(&mut self, groups: &[Vec<usize>], inclusion: &[f64]) -> Vec<(usize, f64)> {
        let nodes = groups.iter().flatten().map(|node| node + 1).max().unwrap_or(0);
        let nodes = nodes.max(self.gains.len());
        self.gains.resize(nodes, 0.0);
        self.shared.resize(nodes, false);
        for ((gain, shared), inclusion) in self.gains.iter_mut().zip(&mut self.shared).zip(inclusion) {
            *gain = GAIN_DECAY * *gain + if std::mem::take(shared) { 0.0 } else { *inclusion };
        }
        let mut owed = Vec::new();
        for group in groups.iter().filter(|group| group.len() > 1) {
            let gains: Vec<f64> = group.iter().map(|node| self.gains[*node]).collect();
            let (sum, max) =
                gains.iter().fold((0.0, 0.0f64), |(sum, max), gain| (sum + gain, max.max(*gain)));
            for (node, gain) in group.iter().zip(gains) {
                if gain > 0.0 && max < sum {
                    owed.push((*node, gain * (1.0 - max / sum)));
                }
                (self.gains[*node], self.shared[*node]) = (0.0, true);
            }
        }
        owed
    }

    /// Whether it can belong to so many members.
    pub(crate) fn is_sound(&self, members: usize) -> bool {
        self.gains.len() <= members && self.shared.len() <= members
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_were_paid_as_two_owe_the_pay_of_one() {
        let mut debt = TwinDebt::default();
        let alone = [vec![0], vec![1], vec![2]];
        for _ in 0..4 {
            assert_eq!(debt.settle(&alone, &[0.5, 0.5, 0.5]), []);
        }
        let gained: f64 = (0..5).map(|round| 0.5 * GAIN_DECAY.powi(round)).sum();
        let owed = debt.settle(&[vec![0, 2], vec![1]], &[0.5, 0.5, 0.5]);
        assert_eq!(owed.iter().map(|(node, _)| *node).collect::<Vec<_>>(), [0, 2]);
        assert!((owed.iter().map(|(_, amount)| amount).sum::<f64>() - gained).abs() < 1e-12, "{owed:?}");
        // From now on they share the odds of one, and owe nothing more.
        assert_eq!(debt.settle(&[vec![0, 2], vec![1]], &[0.25, 0.5, 0.25]), []);
    }

    #[test]
    fn a_second_name_that_gained_nothing_costs_the_first_nothing() {
        let mut debt = TwinDebt::default();
        for _ in 0..50 {
            debt.settle(&[vec![0], vec![1], vec![2]], &[0.5, 0.5, 0.0]);
        }
        assert_eq!(debt.settle(&[vec![0, 2], vec![1]], &[0.5, 0.5, 0.0]), []);
    }
}
