//! The largest value of every window.

use burn_flex::FlexTensor;

use super::{Fused, dense, shape, tensor, values};
use crate::kernel::Window;

#[derive(Debug, Clone)]
pub(super) struct Max(pub(super) Window);

/// Where each output came from within its plane, and the input's shape.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    places: std::sync::Arc<[u32]>,
    shape: [usize; 4],
}

impl Fused<1> for Max {
    type Saved = Origin;

    fn forward(&self, [x]: [FlexTensor; 1]) -> (FlexTensor, Self::Saved) {
        let x = dense(x);
        let input: [usize; 4] = shape(&x);
        let [batch, channels, height, width] = input;
        let Window { kernel, stride, dilation } = self.0;
        let size = |i: usize, size: usize| (size - dilation[i] * (kernel[i] - 1) - 1) / stride[i] + 1;
        let (rows, columns) = (size(0, height), size(1, width));
        let mut out = Vec::with_capacity(batch * channels * rows * columns);
        let mut places = Vec::with_capacity(out.capacity());
        for plane in values(&x).chunks_exact(height * width) {
            for row in 0..rows {
                for column in 0..columns {
                    let corner = row * stride[0] * width + column * stride[1];
                    let (mut best, mut place) = (plane[corner], corner);
                    for i in 0..kernel[0] {
                        let line = corner + i * dilation[0] * width;
                        for j in 0..kernel[1] {
                            let here = line + j * dilation[1];
                            let value = plane[here];
                            // Not a number wins, as everywhere.
                            if value > best || value.is_nan() {
                                (best, place) = (value, here);
                            }
                        }
                    }
                    out.push(best);
                    places.push(place as u32);
                }
            }
        }
        (tensor(out, &[batch, channels, rows, columns]), Origin { places: places.into(), shape: input })
    }

    fn backward(&self, origin: Origin, gradient: FlexTensor, _: [bool; 1]) -> [Option<FlexTensor>; 1] {
        let gradient = dense(gradient);
        let [batch, channels, height, width] = origin.shape;
        let each = origin.places.len() / (batch * channels);
        let mut out = vec![0.0; batch * channels * height * width];
        let slopes = values(&gradient).chunks_exact(each).zip(origin.places.chunks_exact(each));
        for (plane, (slopes, places)) in out.chunks_exact_mut(height * width).zip(slopes) {
            slopes.iter().zip(places).for_each(|(slope, &place)| plane[place as usize] += slope);
        }
        [Some(tensor(out, &origin.shape))]
    }
}
