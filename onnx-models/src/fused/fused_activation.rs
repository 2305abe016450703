//! Nonlinearities in one pass, whose derivatives follow from their outputs.

use burn_flex::FlexTensor;

use super::FusedKernel;
use super::lanes::best;
use super::memory_layout::{dense, values, whole, whole_like};
use crate::kernel::UnaryKernel;

#[derive(Debug, Clone, Copy)]
pub(super) enum FusedActivation {
    Tanh,
    Sigmoid,
    Relu,
    /// With a positive slope, so that the output has the input's sign.
    LeakyRelu(f32),
}

impl FusedActivation {
    pub(super) fn of(op: UnaryKernel) -> Option<Self> {
        match op {
            UnaryKernel::Tanh => Some(FusedActivation::Tanh),
            UnaryKernel::Sigmoid => Some(FusedActivation::Sigmoid),
            UnaryKernel::Relu => Some(FusedActivation::Relu),
            UnaryKernel::LeakyRelu(slope) if slope > 0.0 => Some(FusedActivation::LeakyRelu(slope)),
            _ => None,
        }
    }
}

impl FusedKernel<1> for FusedActivation {
    type Saved = FlexTensor;

    fn forward(&self, [x]: [FlexTensor; 1]) -> (FlexTensor, Self::Saved) {
        let mut out = whole(x);
        let data: &mut [f32] = out.storage_mut();
        match *self {
            FusedActivation::Tanh => tanh_all(data),
            FusedActivation::Sigmoid => sigmoid_all(data),
            FusedActivation::Relu => map(data, |x| x.max(0.0)),
            FusedActivation::LeakyRelu(slope) => map(data, |x| if x > 0.0 { x } else { slope * x }),
        }
        (out.clone(), out)
    }

    fn backward(&self, out: FlexTensor, gradient: FlexTensor, _: [bool; 1]) -> [Option<FlexTensor>; 1] {
        let mut gradient = whole_like(gradient, &out);
        let slopes: &mut [f32] = gradient.storage_mut();
        let out = values(&out);
        match *self {
            FusedActivation::Tanh => zip(slopes, out, |slope, y| slope * (1.0 - y * y)),
            FusedActivation::Sigmoid => zip(slopes, out, |slope, y| slope * y * (1.0 - y)),
            FusedActivation::Relu => zip(slopes, out, |slope, y| if y > 0.0 { slope } else { 0.0 }),
            FusedActivation::LeakyRelu(a) => {
                zip(slopes, out, |slope, y| if y > 0.0 { slope } else { a * slope })
            }
        }
        [Some(gradient)]
    }
}

fn map(data: &mut [f32], f: impl Fn(f32) -> f32) {
    best(
        #[inline(always)]
        || data.iter_mut().for_each(|x| *x = f(*x)),
    );
}

fn zip(data: &mut [f32], other: &[f32], f: impl Fn(f32, f32) -> f32) {
    best(
        #[inline(always)]
        || data.iter_mut().zip(other).for_each(|(x, y)| *x = f(*x, *y)),
    );
}

#[expect(clippy::redundant_closure, reason = "the inline attribute applies to a closure only")]
pub(super) fn tanh_all(data: &mut [f32]) {
    map(
        data,
        #[inline(always)]
        |x| tanh(x),
    );
}

pub(super) fn sigmoid_all(data: &mut [f32]) {
    map(
        data,
        #[inline(always)]
        |x| 0.5 + 0.5 * tanh(0.5 * x),
    );
}

/// The rational approximation of tanh that Eigen and XLA use: within a few units in the last place, and without
/// branches, so that a loop of it becomes vector instructions.
#[inline(always)]
fn tanh(x: f32) -> f32 {
    let x = x.clamp(-7.905_311, 7.905_311);
    let s = x * x;
    let p = -2.760_768_5e-16;
    let p = p * s + 2.000_188e-13;
    let p = p * s + -8.604_672e-11;
    let p = p * s + 5.122_297_1e-8;
    let p = p * s + 1.485_722_4e-5;
    let p = p * s + 6.372_619_5e-4;
    let p = p * s + 4.893_525e-3;
    let q = 1.198_258_4e-6;
    let q = q * s + 1.185_347_1e-4;
    let q = q * s + 2.268_434_6e-3;
    let q = q * s + 4.893_525e-3;
    x * p / q
}

#[derive(Debug, Clone)]
pub(super) struct FusedLogSoftmax {
    pub(super) dim: usize,
}

impl FusedLogSoftmax {
    /// Calls `f` with the offset and stride of every line of values along the dimension, and their number.
    fn lines(&self, shape: &[usize], mut f: impl FnMut(usize, usize, usize)) {
        let (outer, size, inner): (usize, usize, usize) =
            (shape[..self.dim].iter().product(), shape[self.dim], shape[self.dim + 1..].iter().product());
        for o in 0..outer {
            (0..inner).for_each(|i| f(o * size * inner + i, inner, size));
        }
    }
}

impl FusedKernel<1> for FusedLogSoftmax {
    type Saved = FlexTensor;

    fn forward(&self, [x]: [FlexTensor; 1]) -> (FlexTensor, Self::Saved) {
        let mut out = whole(dense(x));
        let shape = out.layout().shape().to_vec();
        let data: &mut [f32] = out.storage_mut();
        self.lines(&shape, |start, stride, size| {
            let line = || (0..size).map(|i| start + i * stride);
            let max = line().fold(f32::NEG_INFINITY, |max, i| max.max(data[i]));
            let total: f32 = line().map(|i| (data[i] - max).exp()).sum();
            let shift = max + total.ln();
            line().for_each(|i| data[i] -= shift);
        });
        (out.clone(), out)
    }

    fn backward(&self, out: FlexTensor, gradient: FlexTensor, _: [bool; 1]) -> [Option<FlexTensor>; 1] {
        let mut gradient = whole(dense(gradient));
        let shape = out.layout().shape().to_vec();
        let slopes: &mut [f32] = gradient.storage_mut();
        let out = values(&out);
        self.lines(&shape, |start, stride, size| {
            let line = || (0..size).map(|i| start + i * stride);
            let sum: f32 = line().map(|i| slopes[i]).sum();
            line().for_each(|i| slopes[i] -= out[i].exp() * sum);
        });
        [Some(gradient)]
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn tanh_is_within_a_few_units_in_the_last_place() {
        let worst = (-100_000..=100_000).map(|i| i as f32 * 1e-4).fold(0.0f64, |worst, x| {
            let exact = f64::from(x).tanh();
            let error = (f64::from(super::tanh(x)) - exact).abs() / exact.abs().max(1e-3);
            worst.max(error)
        });
        assert!(worst < 5e-7, "{worst:e}");
        assert_eq!(super::tanh(0.0), 0.0);
        assert!(super::tanh(f32::NAN).is_nan());
    }
}
