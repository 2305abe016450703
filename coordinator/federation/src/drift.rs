//! Whether the standings still hold: everybody is measured now and then, and tested against the exploration.

use serde::{Deserialize, Serialize};

use super::history::History;
use super::record::Judgement;
use super::settings::ExploitingConfig;
use evenhand_fairness::judge_drift;

/// What the exploration showed, and what was measured since.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct DriftWatch {
    /// φ of the exploration that settled the standings.
    pub(super) reference: History,
    /// Columns that are tested: those the stop rule watched.
    pub(super) watched: Vec<usize>,
    /// φ measured since the last test.
    pub(super) batch: History,
}

impl DriftWatch {
    pub(super) fn new(reference: History, watched: Vec<usize>) -> Self {
        Self { reference, watched, batch: History::default() }
    }

    /// Whether everybody is to be measured in this round of the exploiting phase, counted from 1.
    pub(super) fn is_due(&self, round: u32, rules: &ExploitingConfig) -> bool {
        let known = self.reference.len() > 0 && !self.watched.is_empty();
        rules.audit_every > 0 && known && round.is_multiple_of(rules.audit_every)
    }

    /// Takes in φ of one more round. When enough have come together, they are tested as one batch and
    /// put away: every test has its own rounds, so that the level is what it says.
    pub(super) fn take_in(
        &mut self,
        round: u32,
        row: Vec<f64>,
        rules: &ExploitingConfig,
    ) -> Option<Judgement> {
        self.batch.push(round, row);
        if self.batch.len() < rules.audit_window as usize {
            return None;
        }
        let batch = std::mem::take(&mut self.batch);
        let verdict = judge_drift(self.reference.rows(), batch.rows(), &self.watched, rules.audit_level);
        Some(verdict.into())
    }
}

/// Whether a test says that the standings do not hold any more.
pub(super) fn drifted(judgement: &Judgement, rules: &ExploitingConfig) -> bool {
    judgement.p_value.is_some_and(|p| p < rules.audit_level)
}
