//! The temperature that keeps a promised wait.

use super::{inclusion_probabilities, sampling_probabilities};
use crate::FairnessError;

/// The lowest temperature β at which no node waits longer than `worst_wait` rounds on average: the strongest reward for
/// contribution that keeps the promise.
///
/// # Formula
/// The mean wait of node i is 1/πᵢ rounds, with πᵢ its [inclusion probability](inclusion_probabilities) under ϱ =
/// softmax(ψ/β). Equal odds give N/k, the least that can be promised. As β grows, the lowest πᵢ rises towards that.
///
/// Nothing is to be found where all standings are equal, or everybody is drawn in every round: every temperature then gives
/// the same odds, and 1 is returned.
///
/// # Errors
/// [`FairnessError::Unreachable`] if even equal odds leave a longer wait; other variants name an input that is empty, out of
/// range or not finite.
///
/// # Example
/// ```
/// # use evenhand_fairness::{inclusion_probabilities, sampling_probabilities, temperature_for_worst_wait};
/// let standings = [0.1, 0.2, 0.4, 0.5];
/// let beta = temperature_for_worst_wait(&standings, 1, 12.0)?;
/// let odds = inclusion_probabilities(&sampling_probabilities(&standings, beta), 1);
/// assert!((1.0 / odds[0] - 12.0).abs() < 1e-6);
/// # Ok::<(), evenhand_fairness::FairnessError>(())
/// ```
pub fn temperature_for_worst_wait(
    standings: &[f64],
    k: usize,
    worst_wait: f64,
) -> Result<f64, FairnessError> {
    if standings.is_empty() {
        return Err(FairnessError::Empty { field: "standings" });
    }
    if let Some(i) = standings.iter().position(|standing| !standing.is_finite()) {
        return Err(FairnessError::NotFinite { field: format!("standings[{i}]") });
    }
    if k == 0 {
        return Err(FairnessError::OutOfRange { field: "k".into(), found: 0.0, wanted: "at least 1" });
    }
    let equal = (standings.len() as f64 / k as f64).max(1.0);
    // Equal odds promise exactly `equal`: no temperature reaches it, infinitely high ones approach it.
    if worst_wait.is_nan() || worst_wait < equal * (1.0 - 1e-12) {
        return Err(FairnessError::Unreachable {
            demand: format!("worst_wait = {worst_wait}"),
            reachable: format!(
                "equal odds for {} nodes and k = {k} are a wait of {equal} rounds; raise k, or promise a longer wait",
                standings.len()
            ),
        });
    }
    let (least, most) = standings
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), s| (least.min(*s), most.max(*s)));
    let spread = most - least;
    if spread == 0.0 || k >= standings.len() {
        return Ok(1.0);
    }
    if !spread.is_finite() {
        return Err(FairnessError::NotFinite { field: "the spread of standings".into() });
    }
    let keeps = |temperature: f64| {
        let inclusion = inclusion_probabilities(&sampling_probabilities(standings, temperature), k);
        let lowest = inclusion.into_iter().fold(f64::INFINITY, f64::min);
        // Rounding must not turn a promise of equal odds into an unreachable one.
        lowest * worst_wait >= 1.0 - 1e-9
    };
    // β between where the lowest has nothing and where odds are equal, in double precision.
    let (mut breaks, mut keeping) = ((spread * 1e-3).ln(), (spread * 1e12).ln());
    if keeps(breaks.exp()) {
        return Ok(breaks.exp());
    }
    for _ in 0..100 {
        let middle = 0.5 * (breaks + keeping);
        if keeps(middle.exp()) { keeping = middle } else { breaks = middle }
    }
    Ok(keeping.exp())
}
