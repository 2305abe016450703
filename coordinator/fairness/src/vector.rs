//! Sums and products of updates in double precision.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;
use std::ops::Range;

/// Values of each update that are worked on at a time, for few nodes: what is read for g_N is then
/// still in the cache for ⟨Δθᵢ, g_N⟩.
const SPAN_MAX: usize = 4096;
/// The same for many nodes: shorter runs would not be read at full speed.
const SPAN_MIN: usize = 512;
/// The size of the spans of all nodes together, in values.
const CACHED: usize = 1 << 17;

/// ⟨Δθᵢ, g_N⟩ of every node.
///
/// Streams along the model's dimension in double precision: beside the updates there is only a span
/// of g_N and N sums for each core at work.
pub(super) fn products(updates: &[&[f32]], weights: &[f64]) -> Vec<f64> {
    let dim = updates.first().map_or(0, |update| update.len());
    let span = (CACHED / updates.len().max(1)).clamp(SPAN_MIN, SPAN_MAX);
    // A fixed number of groups, so that the sums do not depend on the number of cores.
    let (spans, groups) = (dim.div_ceil(span), 64);
    let parts: Vec<Vec<f64>> = (0..groups)
        .into_par_iter()
        .map(|group| {
            let range = spans * group / groups * span..dim.min(spans * (group + 1) / groups * span);
            sum_over(updates, weights, range, span)
        })
        .collect();
    (0..updates.len()).map(|i| parts.iter().map(|part| part[i]).sum::<f64>()).collect()
}

/// The part of ⟨Δθᵢ, g_N⟩ that comes from a range of the dimension.
fn sum_over(updates: &[&[f32]], weights: &[f64], range: Range<usize>, span: usize) -> Vec<f64> {
    let processor = Arch::new();
    let mut sums = vec![0.0; updates.len()];
    let mut whole = vec![0.0; span];
    for start in range.clone().step_by(span) {
        let span = start..range.end.min(start + span);
        let whole = &mut whole[..span.len()];
        processor.dispatch(SpanProducts { updates, weights, span, whole, sums: &mut sums });
    }
    sums
}

/// The sums over one span, as a value so that it is compiled for each instruction set.
struct SpanProducts<'a> {
    updates: &'a [&'a [f32]],
    weights: &'a [f64],
    span: Range<usize>,
    whole: &'a mut [f64],
    sums: &'a mut [f64],
}

impl WithSimd for SpanProducts<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        self.whole.fill(0.0);
        for (update, weight) in self.updates.iter().zip(self.weights) {
            add(self.whole, *weight, &update[self.span.clone()]);
        }
        for (sum, update) in self.sums.iter_mut().zip(self.updates) {
            *sum += dot(self.whole, &update[self.span.clone()]);
        }
    }
}

/// ‖Δθ‖².
pub(super) struct SquaredNorm<'a>(pub(super) &'a [f32]);

impl WithSimd for SquaredNorm<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let (chunks, rest) = self.0.as_chunks::<16>();
        let mut sums = [0.0; 16];
        for chunk in chunks {
            for lane in 0..16 {
                sums[lane] += f64::from(chunk[lane]).powi(2);
            }
        }
        sums.iter().sum::<f64>() + rest.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>()
    }
}

/// The scalar product of a sum and an update, as a value so that it is compiled for each instruction set.
pub(super) struct Dot<'a>(pub(super) &'a [f64], pub(super) &'a [f32]);

impl WithSimd for Dot<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        dot(self.0, self.1)
    }
}

/// Adds `weight` times an update to a sum.
#[inline(always)]
pub(super) fn add(sum: &mut [f64], weight: f64, update: &[f32]) {
    for (sum, value) in sum.iter_mut().zip(update) {
        *sum += weight * f64::from(*value);
    }
}

/// The scalar product of a sum and an update.
#[inline(always)]
pub(super) fn dot(whole: &[f64], update: &[f32]) -> f64 {
    // Sixteen sums side by side, so that the processor need not wait for one to add to the next.
    let mut sums = [0.0; 16];
    let (whole, rest) = whole.as_chunks::<16>();
    let (update, update_rest) = update.as_chunks::<16>();
    for (whole, update) in whole.iter().zip(update) {
        for lane in 0..16 {
            sums[lane] += whole[lane] * f64::from(update[lane]);
        }
    }
    let rest: f64 = rest.iter().zip(update_rest).map(|(a, b)| a * f64::from(*b)).sum();
    sums.iter().sum::<f64>() + rest
}

/// True if updates of total square `mass` have a sum that single precision cannot distinguish from zero.
pub(super) fn vanishes(square: f64, mass: f64) -> bool {
    square <= f64::from(f32::EPSILON) * mass
}
