//! Whether the standings still hold: everybody is measured now and then, and tested against the exploration.

use serde::{Deserialize, Serialize};

use super::history::History;
use super::record::Judgement;
use super::settings::ExploitingConfig;
use evenhand_fairness::hotelling;

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
        let of_watched = |rows: &[Vec<f64>]| -> Vec<Vec<f64>> {
            let value = |row: &Vec<f64>, column: &usize| row.get(*column).copied().unwrap_or(0.0);
            rows.iter().map(|row| self.watched.iter().map(|column| value(row, column)).collect()).collect()
        };
        let (before, now) = (of_watched(self.reference.rows()), of_watched(batch.rows()));
        let mut judgement = Judgement {
            t2: None,
            f: None,
            p_value: None,
            trend_p_value: None,
            half_width: None,
            stop: false,
            reason: String::new(),
        };
        judgement.reason = match hotelling::two_sample(&before, &now, self.watched.len()) {
            Ok(test) => {
                (judgement.t2, judgement.f) = (Some(test.t2), Some(test.f));
                judgement.p_value = Some(test.p_value);
                match drifted(&judgement, rules) {
                    true => {
                        format!("contributions have moved: p = {:.2e}; they are measured anew", test.p_value)
                    }
                    false => format!("contributions still hold: p = {:.3}", test.p_value),
                }
            }
            Err(_) => {
                "too few rounds, or too little variation, to tell whether contributions still hold".into()
            }
        };
        Some(judgement)
    }
}

/// Whether a test says that the standings do not hold any more.
pub(super) fn drifted(judgement: &Judgement, rules: &ExploitingConfig) -> bool {
    judgement.p_value.is_some_and(|p| p < rules.audit_level)
}
