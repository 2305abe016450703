//! Standings shrunk by their own uncertainty.

/// Standings moved towards their mean as far as they may be luck.
///
/// # Formula
/// ψ̃ᵢ = ψ̄ + (ψᵢ − ψ̄)·s²/(s² + eᵢ²), with eᵢ the standard error of ψᵢ, s² = max(0, variance of ψ − mean of e²) the variance
/// among nodes that is not error, and ψ̄ the mean weighted by 1/(s² + eᵢ²) (empirical Bayes, Efron and Morris 1975).
///
/// Standings that differ by no more than their errors become equal, so that luck of the first rounds is not rewarded.
///
/// # Example
/// ```
/// # use evenhand_fairness::shrunk_standings;
/// // Far apart for their errors: hardly changed.
/// let known = shrunk_standings(&[0.1, 0.3], &[0.01, 0.01]);
/// assert!((known[1] - known[0] - 0.2).abs() < 0.01);
/// // No further apart than their errors: equal.
/// let unknown = shrunk_standings(&[0.1, 0.3], &[0.2, 0.2]);
/// assert!(unknown[0] == unknown[1] && (unknown[0] - 0.2).abs() < 1e-12);
/// ```
pub fn shrunk_standings(standings: &[f64], errors: &[f64]) -> Vec<f64> {
    let count = standings.len() as f64;
    if standings.len() < 2 {
        return standings.to_vec();
    }
    let mean = standings.iter().sum::<f64>() / count;
    let variance = standings.iter().map(|standing| (standing - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let noise = errors.iter().map(|error| error * error).sum::<f64>() / count;
    let signal = (variance - noise).max(0.0);
    let precision = |error: f64| 1.0 / (signal + error * error);
    let total: f64 = errors.iter().map(|error| precision(*error)).sum();
    let centre = if total.is_finite() {
        standings.iter().zip(errors).map(|(standing, error)| standing * precision(*error)).sum::<f64>()
            / total
    } else {
        mean
    };
    let shrink = |(standing, error): (&f64, &f64)| {
        let share = if signal == 0.0 { 0.0 } else { signal / (signal + error * error) };
        centre + (standing - centre) * share
    };
    standings.iter().zip(errors).map(shrink).collect()
}
