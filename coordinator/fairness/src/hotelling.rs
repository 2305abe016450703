//! Hotelling's T² tests of means of several variables.

use nalgebra::{Cholesky, DMatrix, DVector};
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

/// A T² statistic, its F transform and the probability of a larger one under the null hypothesis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hotelling {
    /// T².
    pub t2: f64,
    /// T² scaled to an F statistic.
    pub f: f64,
    /// P(F ≥ f).
    pub p_value: f64,
}

/// The reason why there is no statistic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoStatistic {
    /// Fewer rows than the covariance has to have.
    TooFew {
        /// The least number of rows.
        needed: usize,
    },
    /// A variable that never varies.
    Constant {
        /// Its column.
        column: usize,
    },
    /// Variables that determine each other.
    Singular,
}

/// One-sample test that the mean is `mu0`.
///
/// # Formula
/// T² = n(x̄−μ₀)ᵀS⁻¹(x̄−μ₀), S with n − 1; F = T²(n−d)/(d(n−1)) on (d, n−d) degrees of freedom.
///
/// # Errors
/// [`NoStatistic`] for too few rows, a constant column, or columns that determine each other.
///
/// # Example
/// ```
/// # use evenhand_fairness::hotelling::one_sample;
/// // Mean 2, s² = 1, n = 3: T² = F = 3·(2 − 1)².
/// let test = one_sample(&[vec![1.0], vec![2.0], vec![3.0]], &[1.0]).expect("the rows vary");
/// assert!((test.t2 - 3.0).abs() < 1e-12);
/// ```
pub fn one_sample(rows: &[Vec<f64>], mu0: &[f64]) -> Result<Hotelling, NoStatistic> {
    let (n, d) = (rows.len(), mu0.len());
    if n <= d {
        return Err(NoStatistic::TooFew { needed: d + 1 });
    }
    let (mean, scatter) = mean_and_scatter(rows, d);
    let off = mean - DVector::from_column_slice(mu0);
    let distance = mahalanobis(&(scatter / (n as f64 - 1.0)), &off)?;
    Ok(by_f(n as f64 * distance, d as f64, n as f64 - 1.0))
}

/// Two-sample test, with one covariance for both, that the means are equal.
///
/// # Formula
/// T² = n₁n₂/(n₁+n₂) · (x̄−ȳ)ᵀS⁻¹(x̄−ȳ), S pooled with ν = n₁ + n₂ − 2;
/// F = T²(ν−d+1)/(dν) on (d, ν−d+1) degrees of freedom: exact for normal rows.
///
/// # Errors
/// As [`one_sample`].
pub fn two_sample(first: &[Vec<f64>], second: &[Vec<f64>], d: usize) -> Result<Hotelling, NoStatistic> {
    let (n1, n2) = (first.len(), second.len());
    if n1 == 0 || n2 == 0 || n1 + n2 < d + 2 {
        return Err(NoStatistic::TooFew { needed: d + 2 });
    }
    let (mean1, scatter1) = mean_and_scatter(first, d);
    let (mean2, scatter2) = mean_and_scatter(second, d);
    let freedom = (n1 + n2 - 2) as f64;
    let distance = mahalanobis(&((scatter1 + scatter2) / freedom), &(mean1 - mean2))?;
    let harmonic = (n1 * n2) as f64 / (n1 + n2) as f64;
    Ok(by_f(harmonic * distance, d as f64, freedom))
}

/// Test that the mean does not move with time, rows being rounds.
///
/// # Formula
/// With b̂ the slopes of the d variables
/// over the rounds 1 … n, T² = Sₓₓ·b̂ᵀS⁻¹b̂, Sₓₓ = n(n²−1)/12, S of the residuals, ν = n − 2;
/// F = T²(ν−d+1)/(dν) on (d, ν−d+1) degrees of freedom: exact for normal rows.
///
/// # Errors
/// As [`one_sample`].
pub fn trend(rows: &[Vec<f64>], d: usize) -> Result<Hotelling, NoStatistic> {
    let n = rows.len();
    if n < d + 2 {
        return Err(NoStatistic::TooFew { needed: d + 2 });
    }
    let (_, scatter) = mean_and_scatter(rows, d);
    let time = |round: usize| round as f64 - (n as f64 - 1.0) / 2.0;
    let square = n as f64 * ((n * n) as f64 - 1.0) / 12.0;
    let slope = |column: usize, _| {
        rows.iter().enumerate().map(|(round, row)| time(round) * row[column]).sum::<f64>() / square
    };
    let slopes = DVector::from_fn(d, slope);
    let rest = scatter - square * &slopes * slopes.transpose();
    let freedom = n as f64 - 2.0;
    let distance = mahalanobis(&(rest / freedom), &slopes)?;
    Ok(by_f(square * distance, d as f64, freedom))
}

fn by_f(t2: f64, d: f64, freedom: f64) -> Hotelling {
    let rest = freedom - d + 1.0;
    let f = t2 * rest / (d * freedom);
    let law = FisherSnedecor::new(d, rest).expect("both degrees of freedom are at least one");
    Hotelling { t2, f, p_value: law.sf(f) }
}

/// The mean row x̄, and Σ(x − x̄)(x − x̄)ᵀ.
pub(super) fn mean_and_scatter(rows: &[Vec<f64>], d: usize) -> (DVector<f64>, DMatrix<f64>) {
    // Summed as differences from the first row, so that a constant column has a scatter of exactly 0.
    let first = rows.first().cloned().unwrap_or_default();
    let mut sums = vec![0.0; d];
    for row in rows {
        sums.iter_mut().zip(row.iter().zip(&first)).for_each(|(sum, (x, first))| *sum += x - first);
    }
    let mean: Vec<f64> =
        first.iter().zip(&sums).map(|(first, sum)| first + sum / rows.len() as f64).collect();
    let mut scatter = vec![0.0; d * d];
    let mut off = vec![0.0; d];
    for row in rows {
        off.iter_mut().zip(row.iter().zip(&mean)).for_each(|(off, (x, mean))| *off = x - mean);
        for (line, a) in scatter.chunks_exact_mut(d).zip(&off) {
            line.iter_mut().zip(&off).for_each(|(sum, b)| *sum += a * b);
        }
    }
    (DVector::from_vec(mean), DMatrix::from_vec(d, d, scatter))
}

/// vᵀS⁻¹v.
fn mahalanobis(covariance: &DMatrix<f64>, v: &DVector<f64>) -> Result<f64, NoStatistic> {
    let v = DMatrix::from_column_slice(v.len(), 1, v.as_slice());
    Ok(whitening(covariance)?.apply(&v)?.norm_squared())
}

/// A map W with WᵀW = S⁻¹: scaled to the correlation matrix, which is as well conditioned as scaling
/// can make it, then by Cholesky's factor of that.
pub(super) struct Whitening {
    scale: DVector<f64>,
    factor: DMatrix<f64>,
}

pub(super) fn whitening(covariance: &DMatrix<f64>) -> Result<Whitening, NoStatistic> {
    let scale = covariance.diagonal().map(f64::sqrt);
    if let Some(column) = scale.iter().position(|scale| scale.is_nan() || *scale == 0.0) {
        return Err(NoStatistic::Constant { column });
    }
    let d = scale.len();
    let correlation = DMatrix::from_fn(d, d, |i, j| covariance[(i, j)] / (scale[i] * scale[j]));
    let factor = Cholesky::new(correlation).ok_or(NoStatistic::Singular)?.unpack();
    // A pivot is the part of a variable that the ones before it do not explain.
    if factor.diagonal().iter().any(|pivot| *pivot < PIVOT_MIN) {
        return Err(NoStatistic::Singular);
    }
    Ok(Whitening { scale, factor })
}

impl Whitening {
    /// WV, column by column.
    pub(super) fn apply(&self, v: &DMatrix<f64>) -> Result<DMatrix<f64>, NoStatistic> {
        let scaled = DMatrix::from_fn(v.nrows(), v.ncols(), |row, column| v[(row, column)] / self.scale[row]);
        self.factor.solve_lower_triangular(&scaled).ok_or(NoStatistic::Singular)
    }
}

/// Below this, rounding errors are all that is left of a variable.
const PIVOT_MIN: f64 = 1e-7;

/// The first `most` of the columns that vary and are no linear combination of the ones before them. A test on them is the
/// test on all of that many columns, where that has a covariance to invert.
pub fn independent_columns(rows: &[Vec<f64>], columns: &[usize], most: usize) -> Vec<usize> {
    let mut independent = Vec::new();
    // The part of each independent column that the ones before it do not explain, of length 1.
    let mut axes: Vec<DVector<f64>> = Vec::new();
    for &column in columns {
        if independent.len() == most {
            break;
        }
        // As differences from the first row, so that a constant column is exactly 0.
        let first = rows.first().map_or(0.0, |row| row[column]);
        let mut rest = DVector::from_iterator(rows.len(), rows.iter().map(|row| row[column] - first));
        rest.add_scalar_mut(-rest.mean());
        let spread = rest.norm();
        // Twice: the first pass leaves rounding errors of its own.
        for axis in axes.iter().chain(&axes) {
            rest -= axis * axis.dot(&rest);
        }
        let unexplained = rest.norm();
        // Well above the least pivot, which the covariance of the independent columns has to have.
        if unexplained > 10.0 * PIVOT_MIN * spread {
            axes.push(rest / unexplained);
            independent.push(column);
        }
    }
    independent
}
