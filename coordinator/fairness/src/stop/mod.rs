//! Stop rules: the end of the exploring phase, once the standings are settled.

mod calibrated;
mod drift;
mod paper;
mod verdict;

pub use drift::judge_drift;
pub use verdict::{StopReason, StopVerdict};

use super::hotelling;
use serde::{Deserialize, Serialize};

/// A stop rule and its parameters.
///
/// # Formula
/// `Paper`: stop at p ≥ α of the one-sample T² against the mean of all rounds but the last τ, Sec. 3.1. `Calibrated`: stop
/// when neither the two-sample T² of the last τ rounds nor the T² of the slopes rejects at `level`, and every standing is
/// known to ±`precision`·β by a confidence sequence valid in all rounds at once (Lai 1976).
///
/// # Example
/// ```
/// use evenhand_fairness::{StopReason, StopRule};
///
/// let rule = StopRule::Paper { window: 5, alpha: 0.7 };
/// let history: Vec<Vec<f64>> = (0..4).map(|t| vec![0.3 + f64::from(t % 2) / 100.0]).collect();
/// let verdict = rule.judge(&history, &[0], 0.1);
/// assert_eq!(verdict.reason, StopReason::TooFewRounds { rounds: 4, needed: 6 });
/// assert_eq!(verdict.to_string(), "not yet, because 4 rounds are too few: the test needs 6");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "kebab-case", deny_unknown_fields)]
pub enum StopRule {
    /// The paper's.
    Paper {
        /// τ: the last rounds left out of μ₀.
        window: usize,
        /// α: stop at p ≥ α.
        alpha: f64,
    },
    /// Ours, with error rates that are what they say.
    Calibrated {
        /// τ: the last rounds, tested against those before.
        window: usize,
        /// The error rate: of each drift test at a look, and of the confidence intervals over all looks.
        level: f64,
        /// The largest half-width allowed, in units of the temperature β.
        precision: f64,
    },
}

impl Default for StopRule {
    fn default() -> Self {
        Self::Paper { window: 15, alpha: 0.7 }
    }
}

impl StopRule {
    /// The rule's verdict on the contributions so far: `history` has a row for each round and a column
    /// for each node, `tested` are the columns tested (M of them), `temperature` is β.
    pub fn judge(&self, history: &[Vec<f64>], tested: &[usize], temperature: f64) -> StopVerdict {
        if tested.is_empty() {
            return StopVerdict::not_yet(tested, StopReason::NoTestedNodes);
        }
        let columns = match columns_of(history, tested) {
            Ok(columns) => columns,
            Err(reason) => return StopVerdict::not_yet(tested, reason),
        };
        match *self {
            Self::Paper { window, alpha } => paper::judge(&columns, tested, window, alpha),
            Self::Calibrated { window, level, precision } => {
                calibrated::judge(history, &columns, tested, window, level, precision * temperature)
            }
        }
    }

    /// The same on the first `most` of the `candidates` whose contributions vary and do not follow from the others', see
    /// [`independent_columns`](hotelling::independent_columns); [`StopVerdict::tested`] lists them.
    ///
    /// Departs from the paper, whose covariance has no inverse when a tested node keeps silent, or when all nodes are
    /// tested and their contributions sum to 1: one node could then prolong the exploration without end.
    pub fn judge_independent(
        &self,
        history: &[Vec<f64>],
        candidates: &[usize],
        most: usize,
        temperature: f64,
    ) -> StopVerdict {
        let (Self::Paper { window, .. } | Self::Calibrated { window, .. }) = *self;
        let founders = history.first().map_or(0, Vec::len);
        let whole = |node: &usize| *node < founders && history.iter().all(|row| row[*node].is_finite());
        let candidates: Vec<usize> = candidates.iter().copied().filter(whole).collect();
        if history.len() <= window {
            return self.judge(history, &candidates[..most.min(candidates.len())], temperature);
        }
        let mut tested = hotelling::independent_columns(history, &candidates, most);
        tested.sort_unstable();
        match tested.is_empty() && !candidates.is_empty() {
            true => StopVerdict { stop: true, ..StopVerdict::not_yet(&tested, StopReason::NothingVaries) },
            false => self.judge(history, &tested, temperature),
        }
    }
}

fn columns_of(history: &[Vec<f64>], tested: &[usize]) -> Result<Vec<Vec<f64>>, StopReason> {
    let row_of = |(round, row): (usize, &Vec<f64>)| {
        let value = |&node: &usize| {
            row.get(node).copied().filter(|value| value.is_finite()).ok_or(StopReason::Absent { node, round })
        };
        tested.iter().map(value).collect()
    };
    history.iter().enumerate().map(row_of).collect()
}
