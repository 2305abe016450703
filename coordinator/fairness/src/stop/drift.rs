//! The test of recent contributions against those of the exploration.

use super::{StopReason, StopVerdict};
use crate::hotelling;

/// The two-sample T² test that the contributions of `recent` rounds have the mean of the `reference` rounds, on the columns
/// `tested`; a node that is missing from a row contributed nothing in it. [`StopReason::Moved`] where p is below `level`.
///
/// # Formula
/// See [`hotelling::two_sample`].
///
/// # Example
/// ```
/// use evenhand_fairness::{StopReason, judge_drift};
///
/// let round = |t: u32, mean: f64| vec![mean + f64::from(t * 7 % 11) / 100.0];
/// let reference: Vec<Vec<f64>> = (0..20).map(|t| round(t, 0.3)).collect();
/// let recent: Vec<Vec<f64>> = (0..10).map(|t| round(t, 0.6)).collect();
/// let verdict = judge_drift(&reference, &recent, &[0], 0.01);
/// assert!(matches!(verdict.reason, StopReason::Moved { .. }), "{verdict}");
/// ```
pub fn judge_drift(reference: &[Vec<f64>], recent: &[Vec<f64>], tested: &[usize], level: f64) -> StopVerdict {
    let columns = |rows: &[Vec<f64>]| -> Vec<Vec<f64>> {
        let value = |row: &Vec<f64>, column: &usize| row.get(*column).copied().unwrap_or(0.0);
        rows.iter().map(|row| tested.iter().map(|column| value(row, column)).collect()).collect()
    };
    match hotelling::two_sample(&columns(reference), &columns(recent), tested.len()) {
        Err(_) => StopVerdict::not_yet(tested, StopReason::Untestable),
        Ok(test) => {
            let p_value = test.p_value;
            let moved = p_value < level;
            let reason = if moved { StopReason::Moved { p_value } } else { StopReason::Holds { p_value } };
            StopVerdict::on(test, tested, false, reason)
        }
    }
}
