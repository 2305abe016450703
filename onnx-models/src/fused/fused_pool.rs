//! The largest value of every window, for all channels of a pixel at once.

use std::sync::Arc;

use burn_flex::FlexTensor;

use super::FusedKernel;
use super::lanes::best;
use super::memory_layout::{channels_last, planes_last, shape, values};
use crate::kernel::PoolWindow;

#[derive(Debug, Clone)]
pub(super) struct FusedMaxPool(pub(super) PoolWindow);

/// The place in its window that each output was taken from, and the input's shape.
#[derive(Debug, Clone)]
pub(super) struct PoolOrigins {
    places: Arc<[u32]>,
    shape: [usize; 4],
}

impl FusedMaxPool {
    fn output(&self, input: [usize; 2]) -> [usize; 2] {
        let PoolWindow { kernel, stride, dilation } = self.0;
        [0, 1].map(|i| (input[i] - dilation[i] * (kernel[i] - 1) - 1) / stride[i] + 1)
    }

    /// Calls `f` with every output pixel, every place of its window, and the input pixel there.
    #[inline(always)]
    fn each(&self, [batch, _, height, width]: [usize; 4], mut f: impl FnMut(usize, usize, usize)) {
        let PoolWindow { kernel, stride, dilation } = self.0;
        let [rows, columns] = self.output([height, width]);
        for pixel in 0..batch * rows * columns {
            let (sample, y, x) = (pixel / (rows * columns), pixel / columns % rows, pixel % columns);
            let corner = (sample * height + y * stride[0]) * width + x * stride[1];
            for place in 0..kernel[0] * kernel[1] {
                let (i, j) = (place / kernel[1], place % kernel[1]);
                f(pixel, place, corner + i * dilation[0] * width + j * dilation[1]);
            }
        }
    }
}

impl FusedKernel<1> for FusedMaxPool {
    type Saved = PoolOrigins;

    fn forward(&self, [x]: [FlexTensor; 1]) -> (FlexTensor, Self::Saved) {
        let x = channels_last(x);
        let shape @ [batch, channels, height, width] = shape(&x);
        let [rows, columns] = self.output([height, width]);
        let count = batch * rows * columns * channels;
        let (mut out, mut places) = (vec![0.0f32; count], vec![0u32; count]);
        let values = values(&x);
        best(
            #[inline(always)]
            || {
                self.each(
                    shape,
                    #[inline(always)]
                    |pixel, place, from| {
                        let from = &values[from * channels..(from + 1) * channels];
                        let to = pixel * channels..(pixel + 1) * channels;
                        if place == 0 {
                            return out[to].copy_from_slice(from);
                        }
                        let best = out[to.clone()].iter_mut().zip(&mut places[to]);
                        for ((best, at), &value) in best.zip(from) {
                            // NaN wins, as on the other backend.
                            let wins = (value > *best) | value.is_nan();
                            *best = if wins { value } else { *best };
                            *at = if wins { place as u32 } else { *at };
                        }
                    },
                );
            },
        );
        let out = planes_last(out, [batch, channels, rows, columns]);
        (out, PoolOrigins { places: places.into(), shape })
    }

    fn backward(&self, origin: PoolOrigins, gradient: FlexTensor, _: [bool; 1]) -> [Option<FlexTensor>; 1] {
        let gradient = channels_last(gradient);
        let channels = origin.shape[1];
        let mut out = vec![0.0; origin.shape.iter().product()];
        let (slopes, places) = (values(&gradient), &origin.places);
        best(
            #[inline(always)]
            || {
                self.each(
                    origin.shape,
                    #[inline(always)]
                    |pixel, place, to| {
                        let from = pixel * channels..(pixel + 1) * channels;
                        let to = &mut out[to * channels..(to + 1) * channels];
                        let slopes = slopes[from.clone()].iter().zip(&places[from]);
                        for (to, (slope, &at)) in to.iter_mut().zip(slopes) {
                            *to += if at == place as u32 { *slope } else { 0.0 };
                        }
                    },
                );
            },
        );
        [Some(planes_last(out, origin.shape))]
    }
}
