//! Relative limits on update norms and sample counts within a round.

use crate::admission::AcceptedUpdate;
use crate::config::AdmissionConfig;

/// Limits of one node beside the others of its round. The excess is cut off and the rest counts, so that an honest burst
/// is not lost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RelativeLimits {
    pub(crate) norm_max: f64,
    pub(crate) samples_max: f64,
    /// Of samples times norm: what an update weighs in the step.
    pub(crate) product_max: f64,
}

impl RelativeLimits {
    /// Limits by the medians of what arrived. Updates of zero do not enter the median of the norms.
    pub(crate) fn of<'a>(
        arrived: impl Iterator<Item = &'a AcceptedUpdate> + Clone,
        limits: &AdmissionConfig,
    ) -> Self {
        let norms = arrived.clone().map(AcceptedUpdate::clipped_norm).filter(|norm| *norm > 0.0);
        let samples = arrived.clone().map(|accepted| f64::from(accepted.samples()));
        let norm_max = times_median(limits.norm_ratio_max, norms);
        let samples_max = times_median(limits.samples_ratio_max, samples);
        let products = arrived.map(|accepted| {
            accepted.clipped_norm().min(norm_max) * f64::from(accepted.samples()).min(samples_max)
        });
        // Both at their limit at once would be their product.
        let ratio = if limits.samples_ratio_max == 0.0 { 0.0 } else { limits.norm_ratio_max };
        let product_max = times_median(ratio, products.filter(|product| *product > 0.0));
        Self { norm_max, samples_max, product_max }
    }
}

/// The lower of the two in the middle, if there are two: of two nodes, the larger one is limited.
fn times_median(ratio: f64, values: impl Iterator<Item = f64>) -> f64 {
    if ratio == 0.0 {
        return f64::INFINITY;
    }
    let mut values: Vec<f64> = values.collect();
    let middle = values.len().saturating_sub(1) / 2;
    values.sort_unstable_by(f64::total_cmp);
    values.get(middle).map_or(f64::INFINITY, |median| ratio * median)
}
