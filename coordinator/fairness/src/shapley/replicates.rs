//! Means and standard errors over independent replicates of an estimate.

use crate::{Contributions, FairnessError};

/// The samples and the precision asked of an estimator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// The number of samples; with `standard_error`, the most.
    pub samples: usize,
    /// Stop as soon as every player's standard error is at most this.
    pub standard_error: Option<f64>,
}

/// Fewer replicates than this say too little about their own spread to stop on it.
const REPLICATES_MIN: usize = 8;

/// Averages replicates of an unbiased estimate until the effort is spent or the wanted error reached.
/// One replicate is drawn by `replicate(&mut values)` and takes `samples_each` samples.
pub(super) fn average(
    players: usize,
    effort: Effort,
    samples_each: usize,
    mut replicate: impl FnMut(&mut [f64]),
) -> Result<Contributions, FairnessError> {
    if effort.samples == 0 {
        return Err(FairnessError::OutOfRange { field: "samples".into(), found: 0.0, wanted: "at least 1" });
    }
    let most = effort.samples.div_ceil(samples_each);
    let mut values = vec![0.0; players];
    let mut means = vec![0.0; players];
    let mut squares = vec![0.0; players];
    let mut taken = 0;
    while taken < most {
        replicate(&mut values);
        taken += 1;
        // Welford's update: Σ(x − mean)² without cancellation.
        for ((value, mean), square) in values.iter().zip(&mut means).zip(&mut squares) {
            let off = value - *mean;
            *mean += off / taken as f64;
            *square += off * (value - *mean);
        }
        let precise = |wanted| standard_errors(&squares, taken).all(|error| error <= wanted);
        if taken >= REPLICATES_MIN && effort.standard_error.is_some_and(precise) {
            break;
        }
    }
    let standard_errors = standard_errors(&squares, taken).collect();
    Ok(Contributions { values: means, standard_errors })
}

/// √(Σ(x − mean)² / (n(n−1))); NaN for a single replicate, which says nothing about its error.
fn standard_errors(squares: &[f64], taken: usize) -> impl Iterator<Item = f64> {
    let n = taken as f64;
    squares.iter().map(move |square| (square / (n * (n - 1.0))).sqrt())
}
