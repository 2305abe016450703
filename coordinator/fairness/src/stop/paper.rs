//! The paper's rule, Sec. 3.1.

use super::{StopReason, StopVerdict};
use crate::hotelling;

/// One-sample Hotelling T² of {φ₁ … φ_t} against μ₀ = mean(φ₁ … φ_{t−τ}); stop when p ≥ α.
///
/// μ₀ comes from the sample under test, so with time T² shrinks by itself and p goes to 1, whether the
/// contributions have settled or not: see docs/fairness.md for its false-stop rates beside those of
/// the calibrated rule.
pub(super) fn judge(rows: &[Vec<f64>], tested: &[usize], window: usize, alpha: f64) -> StopVerdict {
    let (rounds, needed) = (rows.len(), window.max(tested.len()) + 1);
    if rounds < needed {
        return StopVerdict::not_yet(tested, StopReason::TooFewRounds { rounds, needed });
    }
    let before = &rows[..rounds - window];
    let mean = |column: usize| before.iter().map(|row| row[column]).sum::<f64>() / before.len() as f64;
    let mu0: Vec<f64> = (0..tested.len()).map(mean).collect();
    match hotelling::one_sample(rows, &mu0) {
        Err(none) => StopVerdict::not_yet(tested, StopReason::of(none, rounds, tested)),
        Ok(test) if test.p_value >= alpha => {
            StopVerdict::on(test, tested, true, StopReason::Settled { p_value: test.p_value, alpha })
        }
        Ok(test) => {
            StopVerdict::on(test, tested, false, StopReason::Moving { p_value: test.p_value, needed: alpha })
        }
    }
}
