//! A test of multivariate normality, which Hotelling's tests suppose.

use crate::hotelling::{NoStatistic, mean_and_scatter, whitening};
use nalgebra::DMatrix;
use statrs::distribution::{ContinuousCDF, LogNormal};

/// The statistic, and the probability of a larger one if the rows are normal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HenzeZirkler {
    /// HZ.
    pub statistic: f64,
    /// P(larger | normal), by the log-normal approximation.
    pub p_value: f64,
}

/// The test of Henze and Zirkler (1990), rows being observations.
///
/// # Formula
/// HZ = n·[n⁻² Σⱼₖ e^{−b²Dⱼₖ/2} − 2(1+b²)^{−d/2} n⁻¹ Σⱼ e^{−b²Dⱼ/(2(1+b²))} + (1+2b²)^{−d/2}] with
/// Dⱼₖ, Dⱼ the squared Mahalanobis distances between rows and to the mean (covariance with n) and
/// b = 2^{−1/2}·(n(2d+1)/4)^{1/(d+4)}.
///
/// # Errors
/// [`NoStatistic`] for too few rows, a constant column, or columns that determine each other.
pub fn henze_zirkler(rows: &[Vec<f64>]) -> Result<HenzeZirkler, NoStatistic> {
    let d = rows.first().map_or(0, Vec::len);
    if d == 0 || rows.len() <= d {
        return Err(NoStatistic::TooFew { needed: d.max(1) + 1 });
    }
    let (n, p) = (rows.len() as f64, d as f64);
    let (mean, scatter) = mean_and_scatter(rows, d);
    let centred = DMatrix::from_fn(d, rows.len(), |column, row| rows[row][column] - mean[column]);
    let white = whitening(&(scatter / n))?.apply(&centred)?;

    let b2 = 0.5 * (n * (2.0 * p + 1.0) / 4.0).powf(2.0 / (p + 4.0));
    let between: f64 = (0..rows.len())
        .flat_map(|j| (0..rows.len()).map(move |k| (j, k)))
        .map(|(j, k)| (-0.5 * b2 * (white.column(j) - white.column(k)).norm_squared()).exp())
        .sum();
    let to_mean: f64 =
        white.column_iter().map(|row| (-0.5 * b2 / (1.0 + b2) * row.norm_squared()).exp()).sum();
    let statistic =
        between / n - 2.0 * (1.0 + b2).powf(-p / 2.0) * to_mean + n * (1.0 + 2.0 * b2).powf(-p / 2.0);
    Ok(HenzeZirkler { statistic, p_value: tail(statistic, p, b2) })
}

/// P(larger) by the log-normal law with HZ's mean and variance under normality.
fn tail(statistic: f64, p: f64, b2: f64) -> f64 {
    let (b4, b8) = (b2.powi(2), b2.powi(4));
    let a = 1.0 + 2.0 * b2;
    let w = (1.0 + b2) * (1.0 + 3.0 * b2);
    let mean = 1.0 - a.powf(-p / 2.0) * (1.0 + p * b2 / a + p * (p + 2.0) * b4 / (2.0 * a.powi(2)));
    let variance = 2.0 * (1.0 + 4.0 * b2).powf(-p / 2.0)
        + 2.0 * a.powf(-p) * (1.0 + 2.0 * p * b4 / a.powi(2) + 3.0 * p * (p + 2.0) * b8 / (4.0 * a.powi(4)))
        - 4.0 * w.powf(-p / 2.0) * (1.0 + 3.0 * p * b4 / (2.0 * w) + p * (p + 2.0) * b8 / (2.0 * w.powi(2)));
    let spread = (1.0 + variance / mean.powi(2)).ln();
    let law = LogNormal::new(mean.ln() - spread / 2.0, spread.sqrt()).expect("a positive spread");
    law.sf(statistic)
}
