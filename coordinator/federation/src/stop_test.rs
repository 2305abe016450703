//! The stop rule's test on contributions over rounds.

use std::borrow::Cow;

use evenhand_fairness::StopVerdict;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::config::Rules;
use crate::draw::AskedNode;
use crate::history::History;
use crate::index::NodeIndex;
use crate::member::Member;
use crate::roster::Roster;

/// Contributions over rounds, and the nodes by which they are tested.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct StopTest {
    /// φ of the rounds so far.
    pub(crate) history: History,
    /// Nodes that the stop rule tests, drawn once from those asked in the first round.
    pub(crate) tested: Vec<NodeIndex>,
}

impl StopTest {
    /// Draws the nodes to be tested from these, unless that was done.
    pub(crate) fn choose(&mut self, asked: &[AskedNode], rules: &Rules, rng: &mut ChaCha8Rng) {
        if self.tested.is_empty() {
            let tested = (rules.exploring.tested_nodes as usize).min(asked.len());
            self.tested =
                rand::seq::index::sample(rng, asked.len(), tested).iter().map(|i| asked[i].node).collect();
            self.tested.sort_unstable();
        }
    }

    /// Nodes chosen for the test that the verdict does without.
    pub(crate) fn left_out(&self, verdict: &StopVerdict) -> Vec<NodeIndex> {
        self.tested.iter().copied().filter(|node| !verdict.tested.contains(&node.get())).collect()
    }

    /// The stop rule's verdict on the tested nodes, with others in place of those that were removed or, where that is
    /// wanted, are uninformative.
    pub(crate) fn judge(&self, roster: &Roster, rules: &Rules, temperature: f64) -> StopVerdict {
        let members = roster.members();
        let mut rows = Cow::Borrowed(self.history.rows());
        if members.iter().any(Member::is_removed) {
            // A removed node is nothing to wait for.
            for row in rows.to_mut() {
                row.iter_mut()
                    .zip(members)
                    .for_each(|(value, member)| *value *= f64::from(!member.is_removed()));
            }
        }
        let others = NodeIndex::first(members.len()).filter(|node| !self.tested.contains(node));
        let candidates = self.tested.iter().copied().chain(others);
        let candidates = candidates.filter(|node| !roster.member(*node).is_removed()).map(NodeIndex::get);
        let rule = rules.exploring.stop_rule();
        let most = self.tested.len();
        if rules.exploring.skip_uninformative {
            rule.judge_independent(&rows, &candidates.collect::<Vec<_>>(), most, temperature)
        } else {
            let tested: Vec<usize> = candidates.take(most).collect();
            rule.judge(&rows, &tested, temperature)
        }
    }
}
