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
        let count = batch * channels * rows * columns;
        let (mut out, mut places) = (vec![f32::NEG_INFINITY; count], vec![0u32; count]);
        let lines = out.chunks_exact_mut(columns).zip(places.chunks_exact_mut(columns));
        for (index, (best, places)) in lines.enumerate() {
            let (plane, row) = (index / rows, index % rows);
            let plane = &values(&x)[plane * height * width..(plane + 1) * height * width];
            // All windows of a line at once, one place of the kernel after the other: no branches.
            for i in 0..kernel[0] {
                for j in 0..kernel[1] {
                    let start = (row * stride[0] + i * dilation[0]) * width + j * dilation[1];
                    let line = plane[start..].iter().step_by(stride[1]);
                    for (column, ((best, place), &value)) in
                        best.iter_mut().zip(&mut *places).zip(line).enumerate()
                    {
                        // Not a number wins, as everywhere.
                        let wins = (value > *best) | value.is_nan() | (i + j == 0);
                        *best = if wins { value } else { *best };
                        *place = if wins { (start + column * stride[1]) as u32 } else { *place };
                    }
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
