//! Sampling probabilities from standings.

/// The sampling probabilities of nodes with these standings, for any finite ψ and β > 0: β → 0 leaves the best standings
/// only, β → ∞ makes all nodes equal.
///
/// # Formula
/// ϱᵢ = exp(ψᵢ/β) / Σⱼ exp(ψⱼ/β), with ψ the standings and β the temperature.
///
/// # Example
/// ```
/// # use evenhand_fairness::sampling_probabilities;
/// let equal = sampling_probabilities(&[0.2, 0.2], 0.1);
/// assert_eq!(equal, [0.5, 0.5]);
/// ```
pub fn sampling_probabilities(standings: &[f64], temperature: f64) -> Vec<f64> {
    let best = standings.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Differences first: ψ/β may overflow where (ψ − max)/β does not matter any more.
    let shares: Vec<f64> = standings.iter().map(|standing| ((standing - best) / temperature).exp()).collect();
    let sum: f64 = shares.iter().sum();
    shares.iter().map(|share| share / sum).collect()
}
