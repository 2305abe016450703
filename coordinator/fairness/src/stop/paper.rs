//! The paper's rule, Sec. 3.1.

use super::{Reason, Verdict, why_not};
use crate::hotelling;

/// One-sample Hotelling T² of {φ₁ … φ_t} against μ₀ = mean(φ₁ … φ_{t−τ}); stop when p ≥ α.
///
/// μ₀ comes from the sample under test, so with time T² shrinks by itself and p goes to 1, whether the
/// contributions have settled or not: see docs/fairness.md for its false-stop rates beside those of
/// the calibrated rule.
pub(super) fn judge(rows: &[Vec<f64>], watched: &[usize], window: usize, strictness: f64) -> Verdict {
    let (rounds, needed) = (rows.len(), window.max(watched.len()) + 1);
    if rounds < needed {
        return Verdict::not_yet(Reason::TooFewRounds { rounds, needed });
    }
    let before = &rows[..rounds - window];
    let mean = |column: usize| before.iter().map(|row| row[column]).sum::<f64>() / before.len() as f64;
    let mu0: Vec<f64> = (0..watched.len()).map(mean).collect();
    match hotelling::one_sample(rows, &mu0) {
        Err(none) => Verdict::not_yet(why_not(none, rounds, watched)),
        Ok(test) if test.p_value >= strictness => {
            Verdict::on(test, true, Reason::Settled { p_value: test.p_value, strictness })
        }
        Ok(test) => Verdict::on(test, false, Reason::Moving { p_value: test.p_value, needed: strictness }),
    }
}
