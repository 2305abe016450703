//! Sampling probabilities from standings.

/// ϱᵢ = exp(ψᵢ/β) / Σⱼ exp(ψⱼ/β), for any finite ψ and β > 0: β → 0 leaves the best standings only,
/// β → ∞ makes all nodes equal.
pub fn sampling_probabilities(standings: &[f64], temperature: f64) -> Vec<f64> {
    let best = standings.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Differences first: ψ/β may overflow where (ψ − max)/β does not matter any more.
    let shares: Vec<f64> = standings.iter().map(|standing| ((standing - best) / temperature).exp()).collect();
    let sum: f64 = shares.iter().sum();
    shares.iter().map(|share| share / sum).collect()
}
