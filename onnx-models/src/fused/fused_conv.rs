//! Convolutions as sums of products over images whose channels come last.
//!
//! The part of an image under a kernel row is then one run of memory, and neighbouring outputs differ only in where
//! their runs begin. So nothing is unrolled: forward, every output pixel sums its runs times the weights; the gradient of
//! the input adds weights times slopes to the runs; and that of the weights sums over pixels. Only the weights are
//! brought into another order, once for a batch.

use std::borrow::Cow;

use burn_flex::FlexTensor;

use super::lanes::LANES_MAX;
use super::memory_layout::{channels_last, dense, planes_last, shape, tensor, values};
use super::segment_product::{InitialSums, PASS_FLOATS, Product, ProductRow, ProductSegment};
use super::{FusedKernel, InputAndWeight};
use crate::kernel;

#[derive(Debug, Clone)]
pub(super) struct FusedConv(pub(super) kernel::ConvKernel);

/// All sizes of one convolution; channels and outputs are those of one group.
struct ConvGeometry<'a> {
    options: &'a kernel::ConvKernel,
    batch: usize,
    channels: usize,
    outputs: usize,
    input: [usize; 2],
    kernel: [usize; 2],
    output: [usize; 2],
}

impl<'a> ConvGeometry<'a> {
    fn new(options: &'a kernel::ConvKernel, x: &FlexTensor, w: &FlexTensor) -> Self {
        let [batch, _, height, width] = shape(x);
        let [outputs, channels, rows, columns] = shape(w);
        let (input, kernel) = ([height, width], [rows, columns]);
        let output = [0, 1].map(|i| {
            let (begin, end) = options.padding[i];
            (input[i] + begin + end - options.dilation[i] * (kernel[i] - 1) - 1) / options.stride[i] + 1
        });
        ConvGeometry { options, batch, channels, outputs: outputs / options.groups, input, kernel, output }
    }

    /// Pixels of one output image.
    fn area(&self) -> usize {
        self.output[0] * self.output[1]
    }

    /// Channels of all groups.
    fn all_channels(&self) -> usize {
        self.options.groups * self.channels
    }

    /// Outputs of all groups.
    fn all_outputs(&self) -> usize {
        self.options.groups * self.outputs
    }

    fn padded(&self, axis: usize) -> usize {
        self.input[axis] + self.options.padding[axis].0 + self.options.padding[axis].1
    }

    /// Floats of one image row, and of one image, with the border.
    fn line(&self) -> usize {
        self.padded(1) * self.all_channels()
    }

    fn image(&self) -> usize {
        self.padded(0) * self.line()
    }

    fn bordered(&self) -> bool {
        self.options.padding != [(0, 0); 2]
    }

    /// True if a kernel row is one run of memory.
    fn whole_rows(&self) -> bool {
        self.options.groups == 1 && (self.options.dilation[1] == 1 || self.kernel[1] == 1)
    }

    /// Floats of one run.
    fn run(&self) -> usize {
        if self.whole_rows() { self.kernel[1] * self.channels } else { self.channels }
    }

    /// Weights of one output.
    fn depth(&self) -> usize {
        self.kernel[0] * self.kernel[1] * self.channels
    }

    fn padded_outputs(&self) -> usize {
        self.outputs.next_multiple_of(LANES_MAX)
    }

    /// Positions in the image at which the runs of the first output begin.
    fn runs(&self) -> Vec<usize> {
        let columns = if self.whole_rows() { 1 } else { self.kernel[1] };
        let ([down, right], channels) = (self.options.dilation, self.all_channels());
        (0..self.kernel[0])
            .flat_map(|row| (0..columns).map(move |column| (row, column)))
            .map(|(row, column)| row * down * self.line() + column * right * channels)
            .collect()
    }

    /// Position in the image at which the window of every output begins.
    fn windows(&self) -> Vec<usize> {
        let [down, right] = self.options.stride;
        let start = |y: usize, x: usize| y * down * self.line() + x * right * self.all_channels();
        (0..self.output[0]).flat_map(|y| (0..self.output[1]).map(move |x| start(y, x))).collect()
    }

    /// The images with their border.
    fn images<'t>(&self, x: &'t FlexTensor) -> Cow<'t, [f32]> {
        if !self.bordered() {
            return Cow::Borrowed(values(x));
        }
        let mut images = vec![0.0; self.batch * self.image()];
        self.each_line(|inner, bordered, length| {
            images[bordered..bordered + length].copy_from_slice(&values(x)[inner..inner + length])
        });
        Cow::Owned(images)
    }

    /// The images without their border.
    fn inner(&self, images: Vec<f32>) -> Vec<f32> {
        if !self.bordered() {
            return images;
        }
        let mut x = vec![0.0; self.batch * self.input[0] * self.input[1] * self.all_channels()];
        self.each_line(|inner, bordered, length| {
            x[inner..inner + length].copy_from_slice(&images[bordered..bordered + length])
        });
        x
    }

    /// Calls `f` with the place of every image row without and with the border, and its length.
    fn each_line(&self, mut f: impl FnMut(usize, usize, usize)) {
        let (length, [(top, _), (left, _)]) = (self.input[1] * self.all_channels(), self.options.padding);
        for sample in 0..self.batch {
            for y in 0..self.input[0] {
                let bordered = sample * self.image() + (top + y) * self.line() + left * self.all_channels();
                f((sample * self.input[0] + y) * length, bordered, length);
            }
        }
    }

    /// Calls `f` with the place of every weight in the file, its group, its output, and its place in the runs.
    fn each_weight(&self, mut f: impl FnMut(usize, usize, usize, usize)) {
        let area = self.kernel[0] * self.kernel[1];
        for group in 0..self.options.groups {
            for channel in 0..self.channels {
                for place in 0..area {
                    for output in 0..self.outputs {
                        let row = (group * self.outputs + output) * self.channels + channel;
                        f(row * area + place, group, output, place * self.channels + channel);
                    }
                }
            }
        }
    }

    /// Weights as `[groups, depth, outputs]`, outputs padded.
    fn by_depth(&self, w: &[f32]) -> Vec<f32> {
        let (depth, width) = (self.depth(), self.padded_outputs());
        let mut packed = vec![0.0; self.options.groups * depth * width];
        self.each_weight(|place, group, output, d| packed[(group * depth + d) * width + output] = w[place]);
        packed
    }

    /// The inverse of [`ConvGeometry::by_depth`].
    fn as_in_file(&self, packed: &[f32], count: usize) -> Vec<f32> {
        let (depth, width) = (self.depth(), self.padded_outputs());
        let mut w = vec![0.0; count];
        self.each_weight(|place, group, output, d| w[place] = packed[(group * depth + d) * width + output]);
        w
    }

    /// Weights as `[groups, runs, outputs, run]`, runs padded.
    fn by_run(&self, w: &[f32]) -> Vec<f32> {
        let (run, runs) = (self.run(), self.depth() / self.run());
        let width = run.next_multiple_of(LANES_MAX);
        let mut packed = vec![0.0; self.options.groups * runs * self.outputs * width];
        let area = self.kernel[0] * self.kernel[1];
        for row in 0..self.all_outputs() {
            let (group, output) = (row / self.outputs, row % self.outputs);
            for place in 0..area {
                let first = place * self.channels;
                let to = ((group * runs + first / run) * self.outputs + output) * width + first % run;
                for (channel, to) in packed[to..to + self.channels].iter_mut().enumerate() {
                    *to = w[(row * self.channels + channel) * area + place];
                }
            }
        }
        packed
    }
}

impl FusedConv {
    fn run(&self, x: &FlexTensor, w: &FlexTensor, bias: Option<&FlexTensor>) -> FlexTensor {
        let g = ConvGeometry::new(&self.0, x, w);
        let (groups, depth, width, all) = (self.0.groups, g.depth(), g.padded_outputs(), g.all_outputs());
        let packed = g.by_depth(values(w));
        let images = g.images(x);
        let to = (0..g.area()).map(|pixel| pixel * all);
        let rows: Vec<ProductRow> =
            g.windows().into_iter().zip(to).map(|(from, to)| ProductRow { from, to }).collect();
        let runs = g.runs().into_iter().enumerate();
        let segments: Vec<ProductSegment> =
            runs.map(|(i, a)| ProductSegment { a, b: i * g.run() * width }).collect();
        let pass = (PASS_FLOATS / (g.run() * width)).max(1);
        let mut biases = vec![0.0; groups * width];
        if let Some(bias) = bias {
            for (to, from) in biases.chunks_exact_mut(width).zip(values(bias).chunks_exact(g.outputs)) {
                to[..g.outputs].copy_from_slice(from);
            }
        }
        let mut out = vec![0.0; g.batch * g.area() * all];
        for (image, out) in images.chunks_exact(g.image()).zip(out.chunks_exact_mut(g.area() * all)) {
            for group in 0..groups {
                for (index, segments) in segments.chunks(pass).enumerate() {
                    let product = Product {
                        a: &image[group * g.channels..],
                        a_step: 1,
                        b: &packed[group * depth * width..],
                        b_step: width,
                        columns: g.outputs,
                        length: g.run(),
                        segments,
                    };
                    let start = match index {
                        0 => InitialSums::Each(&biases[group * width..]),
                        _ => InitialSums::Out,
                    };
                    product.run(&rows, start, &mut out[group * g.outputs..]);
                }
            }
        }
        planes_last(out, [g.batch, all, g.output[0], g.output[1]])
    }

    fn differentiate(
        &self,
        x: &FlexTensor,
        w: &FlexTensor,
        gradient: FlexTensor,
        wanted: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        let gradient = channels_last(gradient);
        let g = ConvGeometry::new(&self.0, x, w);
        let all = g.all_outputs();
        let mut slopes = Cow::Borrowed(values(&gradient));
        if !all.is_multiple_of(LANES_MAX) || self.0.groups > 1 {
            // The last pixel is read beyond its outputs.
            slopes.to_mut().extend([0.0; LANES_MAX]);
        }
        let b_gradient = wanted[2].then(|| {
            let mut sums = vec![0.0; all];
            for pixel in values(&gradient).chunks_exact(all) {
                sums.iter_mut().zip(pixel).for_each(|(sum, slope)| *sum += slope);
            }
            tensor(sums, &[all])
        });
        let [x_shape, w_shape]: [[usize; 4]; 2] = [shape(x), shape(w)];
        [
            wanted[0].then(|| planes_last(g.inner(self.of_images(&g, values(w), &slopes)), x_shape)),
            wanted[1].then(|| {
                let packed = self.of_weights(&g, &g.images(x), &slopes);
                tensor(g.as_in_file(&packed, values(w).len()), &w_shape)
            }),
            b_gradient,
        ]
    }

    fn of_images(&self, g: &ConvGeometry<'_>, w: &[f32], slopes: &[f32]) -> Vec<f32> {
        let (all, run, runs) = (g.all_outputs(), g.run(), g.runs());
        let width = run.next_multiple_of(LANES_MAX);
        let packed = g.by_run(w);
        let rows: Vec<ProductRow> = g
            .windows()
            .into_iter()
            .enumerate()
            .map(|(pixel, to)| ProductRow { from: pixel * all, to })
            .collect();
        let mut images = vec![0.0; g.batch * g.image()];
        for (sample, image) in images.chunks_exact_mut(g.image()).enumerate() {
            for group in 0..self.0.groups {
                for (index, begin) in runs.iter().enumerate() {
                    let product = Product {
                        a: &slopes[sample * g.area() * all + group * g.outputs..],
                        a_step: 1,
                        b: &packed[(group * runs.len() + index) * g.outputs * width..],
                        b_step: width,
                        columns: run,
                        length: g.outputs,
                        segments: &[ProductSegment { a: 0, b: 0 }],
                    };
                    product.run(&rows, InitialSums::Out, &mut image[begin + group * g.channels..]);
                }
            }
        }
        images
    }

    /// As [`ConvGeometry::by_depth`] has them.
    fn of_weights(&self, g: &ConvGeometry<'_>, images: &[f32], slopes: &[f32]) -> Vec<f32> {
        let (all, depth, width) = (g.all_outputs(), g.depth(), g.padded_outputs());
        let places = g.runs().into_iter().flat_map(|begin| begin..begin + g.run());
        let rows: Vec<ProductRow> =
            places.enumerate().map(|(d, from)| ProductRow { from, to: d * width }).collect();
        let line = |y: usize| ProductSegment { a: y * self.0.stride[0] * g.line(), b: y * g.output[1] * all };
        let segments: Vec<ProductSegment> = (0..g.output[0]).map(line).collect();
        let mut packed = vec![0.0; self.0.groups * depth * width];
        for (sample, image) in images.chunks_exact(g.image()).enumerate() {
            for (group, packed) in packed.chunks_exact_mut(depth * width).enumerate() {
                let product = Product {
                    a: &image[group * g.channels..],
                    a_step: self.0.stride[1] * g.all_channels(),
                    b: &slopes[sample * g.area() * all + group * g.outputs..],
                    b_step: all,
                    columns: g.outputs,
                    length: g.output[1],
                    segments: &segments,
                };
                product.run(&rows, InitialSums::Out, packed);
            }
        }
        packed
    }
}

impl FusedKernel<3> for FusedConv {
    type Saved = InputAndWeight;

    fn forward(&self, [x, w, b]: [FlexTensor; 3]) -> (FlexTensor, Self::Saved) {
        let (x, w) = (channels_last(x), dense(w));
        (self.run(&x, &w, Some(&dense(b))), [x, w])
    }

    fn backward(
        &self,
        [x, w]: Self::Saved,
        gradient: FlexTensor,
        wanted: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        self.differentiate(&x, &w, gradient, wanted)
    }
}

impl FusedKernel<2> for FusedConv {
    type Saved = InputAndWeight;

    fn forward(&self, [x, w]: [FlexTensor; 2]) -> (FlexTensor, Self::Saved) {
        let (x, w) = (channels_last(x), dense(w));
        (self.run(&x, &w, None), [x, w])
    }

    fn backward(
        &self,
        [x, w]: Self::Saved,
        gradient: FlexTensor,
        wanted: [bool; 2],
    ) -> [Option<FlexTensor>; 2] {
        let [x, w, _] = self.differentiate(&x, &w, gradient, [wanted[0], wanted[1], false]);
        [x, w]
    }
}
