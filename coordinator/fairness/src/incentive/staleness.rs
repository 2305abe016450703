//! Staleness of a node's model, given the probability of a draw.

/// The probability of being drawn at least once in k draws with replacement, without cancellation for tiny ϱ.
///
/// # Formula
/// qᵢ = 1 − (1 − ϱᵢ)ᵏ.
///
/// # Example
/// ```
/// # use evenhand_fairness::selection_probability;
/// assert!((selection_probability(0.5, 2) - 0.75).abs() < 1e-12);
/// ```
pub fn selection_probability(sampling_probability: f64, k: u32) -> f64 {
    -log_missed(sampling_probability, k).exp_m1()
}

/// Expected staleness, Sec. 3.2.
///
/// # Formula
/// Γᵢ = (1 − qᵢ) / qᵢ², with qᵢ = 1 − (1 − ϱᵢ)ᵏ.
///
/// The paper sums γ·(1−q)^γ, which is not normalised; the mean of the geometric law is
/// [`mean_staleness`]. Both order the nodes the same way, so either is fair; β is chosen with Γ.
pub fn expected_staleness(sampling_probability: f64, k: u32) -> f64 {
    mean_staleness(sampling_probability, k) / selection_probability(sampling_probability, k)
}

/// The true mean of the staleness γᵢ when each round draws the node with probability qᵢ.
///
/// # Formula
/// (1 − qᵢ) / qᵢ, with qᵢ = 1 − (1 − ϱᵢ)ᵏ.
pub fn mean_staleness(sampling_probability: f64, k: u32) -> f64 {
    log_missed(sampling_probability, k).exp() / selection_probability(sampling_probability, k)
}

/// ln (1 − ϱ)ᵏ.
fn log_missed(sampling_probability: f64, k: u32) -> f64 {
    if k == 0 { 0.0 } else { f64::from(k) * (-sampling_probability).ln_1p() }
}
