//! Estimates over several trials.

use serde::Serialize;

/// A mean over the trials that have the value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// s/√n, with the deviation s of n values; one value has none.
    pub standard_error: Option<f64>,
    /// The values, by seed.
    pub values: Vec<f64>,
}

impl Estimate {
    /// The estimate from the values that there are; none of no values. Only finite numbers are values.
    pub fn of(values: impl IntoIterator<Item = Option<f64>>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().flatten().filter(|value| value.is_finite()).collect();
        let n = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let standard_error = (values.len() > 1).then(|| (squares / (n - 1.0) / n).sqrt());
        Some(Self { mean, standard_error, values })
    }

    /// `0.662 ± 0.031`; with the number of values where fewer than `trials` have one.
    pub fn text(&self, decimals: usize, trials: usize) -> String {
        let mut text = format!("{:.decimals$}", self.mean);
        if let Some(error) = self.standard_error {
            text.push_str(&format!(" ± {error:.decimals$}"));
        }
        if self.values.len() < trials {
            text.push_str(&format!(" ({} of {trials})", self.values.len()));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_error_is_that_of_the_mean() {
        // Deviations −1, 0, 1: s² = 1, so s/√3 = 0.577…
        let estimate = Estimate::of([Some(2.0), Some(3.0), Some(4.0)]).expect("three values");
        assert_eq!(estimate.mean, 3.0);
        assert!((estimate.standard_error.expect("more than one") - 1.0 / 3f64.sqrt()).abs() < 1e-15);
        assert_eq!(estimate.text(3, 3), "3.000 ± 0.577");
    }

    #[test]
    fn what_is_missing_is_left_out_and_counted() {
        let estimate = Estimate::of([Some(1.0), None, Some(f64::NAN), Some(3.0)]).expect("two values");
        assert_eq!((estimate.mean, estimate.standard_error), (2.0, Some(1.0)));
        assert_eq!(estimate.text(1, 4), "2.0 ± 1.0 (2 of 4)");
        assert_eq!(Estimate::of([None, Some(f64::INFINITY)]), None);
        assert_eq!(Estimate::of([Some(0.25)]).expect("one value").text(2, 1), "0.25");
    }
}
