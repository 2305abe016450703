//! The drift test: everybody is measured every so many rounds, and tested against the exploration.

use evenhand_fairness::{StopVerdict, judge_drift};
use serde::{Deserialize, Serialize};

use crate::config::ExploitingConfig;
use crate::history::History;
use crate::index::NodeIndex;

/// The contributions of the exploration, and those measured since.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct DriftTest {
    /// φ of the exploration that settled the standings.
    reference: History,
    /// Nodes that are tested: those of the stop rule.
    pub(crate) tested: Vec<NodeIndex>,
    /// φ measured since the last test.
    batch: History,
}

impl DriftTest {
    pub(crate) fn new(reference: History, tested: Vec<NodeIndex>) -> Self {
        Self { reference, tested, batch: History::default() }
    }

    pub(crate) fn histories_mut(&mut self) -> [&mut History; 2] {
        [&mut self.reference, &mut self.batch]
    }

    /// True if everybody is to be measured in this round of the exploiting phase, counted from 1.
    pub(crate) fn is_due(&self, round: u32, rules: &ExploitingConfig) -> bool {
        let known = self.reference.len() > 0 && !self.tested.is_empty();
        rules.drift_test_every > 0 && known && round.is_multiple_of(rules.drift_test_every)
    }

    /// Adds φ of one more round. When enough have come together, they are tested as one batch and
    /// put away: every test has its own rounds, so that the level is what it says. Returns the verdict, and whether
    /// contributions have drifted.
    pub(crate) fn add(
        &mut self,
        round: u32,
        row: Vec<f64>,
        rules: &ExploitingConfig,
    ) -> Option<(StopVerdict, bool)> {
        self.batch.push(round, row);
        if self.batch.len() < rules.drift_test_window as usize {
            return None;
        }
        let batch = std::mem::take(&mut self.batch);
        let tested: Vec<usize> = self.tested.iter().map(|node| node.get()).collect();
        let verdict = judge_drift(self.reference.rows(), batch.rows(), &tested, rules.drift_test_level);
        let drifted = verdict.p_value.is_some_and(|p| p < rules.drift_test_level);
        Some((verdict, drifted))
    }
}
