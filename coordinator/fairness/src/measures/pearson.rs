//! Correlation.

/// Pearson's correlation of two samples; none when either does not vary or their lengths differ.
///
/// # Formula
/// Σ(xᵢ−x̄)(yᵢ−ȳ) / √(Σ(xᵢ−x̄)² Σ(yᵢ−ȳ)²).
///
/// # Example
/// ```
/// # use evenhand_fairness::measures::pearson;
/// assert_eq!(pearson(&[1.0, 2.0, 4.0], &[3.0, 5.0, 9.0]), Some(1.0));
/// assert_eq!(pearson(&[1.0, 2.0], &[3.0, 3.0]), None);
/// ```
pub fn pearson(x: &[f64], y: &[f64]) -> Option<f64> {
    // Asked of the values themselves: rounding leaves equal ones a little off their mean.
    let varies = |values: &[f64]| values.iter().any(|value| *value != values[0]);
    if x.len() != y.len() || !varies(x) || !varies(y) {
        return None;
    }
    let n = x.len() as f64;
    let (mean_x, mean_y) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (a, b) in x.iter().zip(y) {
        let (a, b) = (a - mean_x, b - mean_y);
        xx += a * a;
        yy += b * b;
        xy += a * b;
    }
    let scale = xx.sqrt() * yy.sqrt();
    (scale > 0.0).then(|| (xy / scale).clamp(-1.0, 1.0))
}
