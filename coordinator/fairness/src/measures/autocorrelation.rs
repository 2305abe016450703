//! Autocorrelation: dependence of a node's contributions on the rounds before.

/// Autocorrelations and the band in which those of independent values would lie.
#[derive(Debug, Clone, PartialEq)]
pub struct Autocorrelation {
    /// r₀ = 1, r₁, … by lag.
    pub by_lag: Vec<f64>,
    /// 95 % of the autocorrelations of n independent values lie within ± this: 1.96/√n.
    pub bound95: f64,
}

/// r_h = Σ(x_t − x̄)(x_{t+h} − x̄) / Σ(x_t − x̄)² for h = 0 … `lags`, the biased estimate, which keeps
/// the sequence positive definite. None when the values never vary.
///
/// The stop rules take rounds as independent: lag 1 far outside the band (as momentum across
/// rounds makes it) says that their error rates do not hold.
pub fn autocorrelation(values: &[f64], lags: usize) -> Option<Autocorrelation> {
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n as f64;
    let centred: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let product = |lag: usize| -> f64 {
        let later = centred.get(lag..).unwrap_or_default();
        centred.iter().zip(later).map(|(a, b)| a * b).sum()
    };
    let whole = product(0);
    (whole > 0.0).then(|| Autocorrelation {
        by_lag: (0..=lags).map(|lag| product(lag) / whole).collect(),
        bound95: 1.96 / (n as f64).sqrt(),
    })
}
