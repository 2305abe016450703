//! Convolutions as matrix products.
//!
//! The input is unrolled along the kernel's width only, one matrix product a kernel row then reads it at shifted columns:
//! a kernel of seven rows costs a seventh of the copying of a full unrolling. Where that would leave the products too
//! thin (few channels) the kernel's rows are unrolled too, into one product.

use burn_flex::FlexTensor;

use super::gemm::{Into, Matrix, multiply};
use super::{Fused, dense, shape, tensor, values};
use crate::kernel;

#[derive(Debug, Clone)]
pub(super) struct Conv(pub(super) kernel::Conv);

/// Thinner products than this are not worth their overhead.
const DEPTH_MIN: usize = 48;

/// All sizes of one convolution.
struct Geometry<'a> {
    options: &'a kernel::Conv,
    batch: usize,
    /// Of one group.
    channels: usize,
    /// Of one group.
    outputs: usize,
    input: [usize; 2],
    kernel: [usize; 2],
    output: [usize; 2],
    /// Whether the kernel's rows are unrolled too.
    full: bool,
}

impl<'a> Geometry<'a> {
    fn new(options: &'a kernel::Conv, x: &FlexTensor, w: &FlexTensor) -> Self {
        let [batch, _, height, width] = shape(x);
        let [outputs, channels, rows, columns] = shape(w);
        let (input, kernel) = ([height, width], [rows, columns]);
        let output = [0, 1].map(|i| {
            let (begin, end) = options.padding[i];
            (input[i] + begin + end - options.dilation[i] * (kernel[i] - 1) - 1) / options.stride[i] + 1
        });
        let full = rows == 1 || channels * columns < DEPTH_MIN;
        Geometry { options, batch, channels, outputs: outputs / options.groups, input, kernel, output, full }
    }

    /// Pixels of one input plane.
    fn input_area(&self) -> usize {
        self.input[0] * self.input[1]
    }

    /// Pixels of one output plane.
    fn area(&self) -> usize {
        self.output[0] * self.output[1]
    }

    /// Input rows of one phase: those that are a multiple of the stride apart.
    fn phase(&self) -> usize {
        self.options.dilation[0] * (self.kernel[0] - 1) / self.options.stride[0] + self.output[0]
    }

    /// Lines of one row of the unrolled matrix.
    fn lines(&self) -> usize {
        if self.full { self.output[0] } else { self.options.stride[0] * self.phase() }
    }

    /// Columns of the unrolled matrix.
    fn width(&self) -> usize {
        self.lines() * self.output[1]
    }

    /// Rows of the unrolled matrix.
    fn depth(&self) -> usize {
        self.channels * self.kernel[1] * if self.full { self.kernel[0] } else { 1 }
    }

    /// The products to sum: the kernel row and the first column each reads.
    fn products(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (stride, dilation, phase, width) =
            (self.options.stride[0], self.options.dilation[0], self.phase(), self.output[1]);
        let rows = if self.full { 1 } else { self.kernel[0] };
        (0..rows).map(move |row| {
            let reach = row * dilation;
            (row, (reach % stride * phase + reach / stride) * width)
        })
    }

    /// Calls `f` with every line of the unrolled matrix: its place there, its row in the input, and the kernel's column.
    fn each_line(&self, mut f: impl FnMut(usize, usize, usize)) {
        let (stride, dilation, phase) = (self.options.stride[0], self.options.dilation[0], self.phase());
        let (top, width) = (self.options.padding[0].0, self.output[1]);
        let mut place = 0;
        for channel in 0..self.channels {
            for row in 0..if self.full { self.kernel[0] } else { 1 } {
                for column in 0..self.kernel[1] {
                    for line in 0..self.lines() {
                        let y = if self.full {
                            line * stride + row * dilation
                        } else {
                            line % phase * stride + line / phase
                        };
                        // Rows outside the image are marked by a row beyond all images.
                        let y = y.wrapping_sub(top);
                        let source = if y < self.input[0] { channel * self.input[0] + y } else { usize::MAX };
                        f(place, source, column);
                        place += width;
                    }
                }
            }
        }
    }

    /// The columns of a line that fall into the image for a kernel column, and where the first falls.
    fn inside(&self, column: usize) -> (usize, usize, usize) {
        let (stride, left, reach) =
            (self.options.stride[1], self.options.padding[1].0, column * self.options.dilation[1]);
        let first = left.saturating_sub(reach).div_ceil(stride).min(self.output[1]);
        let end = (self.input[1] + left).saturating_sub(reach).div_ceil(stride).clamp(first, self.output[1]);
        (first, end, (first * stride + reach).saturating_sub(left))
    }

    fn unroll(&self, planes: &[f32], matrix: &mut [f32]) {
        let (width, stride) = (self.output[1], self.options.stride[1]);
        self.each_line(|place, source, column| {
            let line = &mut matrix[place..place + width];
            let (first, end, from) = self.inside(column);
            if source == usize::MAX || first == end {
                return line.fill(0.0);
            }
            let row = &planes[source * self.input[1]..(source + 1) * self.input[1]];
            line[..first].fill(0.0);
            line[end..].fill(0.0);
            match stride {
                1 => line[first..end].copy_from_slice(&row[from..from + end - first]),
                _ => line[first..end]
                    .iter_mut()
                    .zip(row[from..].iter().step_by(stride))
                    .for_each(|(to, x)| *to = *x),
            }
        });
    }

    /// The adjoint of [`Geometry::unroll`].
    fn roll(&self, matrix: &[f32], planes: &mut [f32]) {
        let (width, stride) = (self.output[1], self.options.stride[1]);
        self.each_line(|place, source, column| {
            let (first, end, from) = self.inside(column);
            if source == usize::MAX || first == end {
                return;
            }
            let line = &matrix[place + first..place + end];
            let row = &mut planes[source * self.input[1]..(source + 1) * self.input[1]];
            match stride {
                1 => row[from..from + line.len()].iter_mut().zip(line).for_each(|(to, x)| *to += x),
                _ => row[from..].iter_mut().step_by(stride).zip(line).for_each(|(to, x)| *to += x),
            }
            debug_assert_eq!(line.len() + first + (width - end), width);
        });
    }

    /// Weights as one matrix `[outputs, depth]` for each kernel row and group; as they are if everything is unrolled.
    fn pack(&self, w: &[f32]) -> Vec<f32> {
        if self.full {
            return w.to_vec();
        }
        let mut packed = vec![0.0; w.len()];
        self.repack(|from, to, length| packed[to..to + length].copy_from_slice(&w[from..from + length]));
        packed
    }

    fn unpack(&self, packed: Vec<f32>) -> Vec<f32> {
        if self.full {
            return packed;
        }
        let mut w = vec![0.0; packed.len()];
        self.repack(|to, from, length| w[to..to + length].copy_from_slice(&packed[from..from + length]));
        w
    }

    /// Calls `f` with the place of every kernel line in the file's order, in the packed order, and its length.
    fn repack(&self, mut f: impl FnMut(usize, usize, usize)) {
        let [rows, columns] = self.kernel;
        let mut place = 0;
        for group in 0..self.options.groups {
            for output in 0..self.outputs {
                for channel in 0..self.channels {
                    for row in 0..rows {
                        let block = (group * rows + row) * self.outputs + output;
                        f(place, (block * self.channels + channel) * columns, columns);
                        place += columns;
                    }
                }
            }
        }
    }

    /// The packed weights of one group and kernel row.
    fn block(&self, group: usize, row: usize) -> std::ops::Range<usize> {
        let size = self.outputs * self.depth();
        let rows = if self.full { 1 } else { self.kernel[0] };
        (group * rows + row) * size..(group * rows + row + 1) * size
    }

    /// The part of a `[batch, channels, …]` tensor that belongs to one sample and group.
    fn part(&self, sample: usize, group: usize, channels: usize, area: usize) -> std::ops::Range<usize> {
        let size = channels * area;
        let index = sample * self.options.groups + group;
        index * size..(index + 1) * size
    }
}

impl Conv {
    fn run(&self, x: &FlexTensor, w: &FlexTensor, bias: Option<&FlexTensor>) -> FlexTensor {
        let g = Geometry::new(&self.0, x, w);
        let (groups, area) = (self.0.groups, g.area());
        let (x, packed) = (values(x), g.pack(values(w)));
        let all = groups * g.outputs;
        let mut out = Vec::with_capacity(g.batch * all * area);
        match bias.map(values) {
            None => out.resize(g.batch * all * area, 0.0),
            Some(bias) => {
                (0..g.batch)
                    .for_each(|_| bias.iter().for_each(|&b| out.extend(std::iter::repeat_n(b, area))));
            }
        }
        let mut matrix = vec![0.0; g.depth() * g.width()];
        for sample in 0..g.batch {
            for group in 0..groups {
                g.unroll(&x[g.part(sample, group, g.channels, g.input_area())], &mut matrix);
                let out = &mut out[g.part(sample, group, g.outputs, area)];
                for (row, column) in g.products() {
                    let weights = Matrix::dense(&packed[g.block(group, row)], g.outputs, g.depth());
                    let window = Matrix::strided(&matrix[column..], g.depth(), area, g.width());
                    multiply(out, area, weights, window, Into::Add);
                }
            }
        }
        tensor(out, &[g.batch, all, g.output[0], g.output[1]])
    }

    fn differentiate(
        &self,
        x: &FlexTensor,
        w: &FlexTensor,
        gradient: FlexTensor,
        wanted: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        let gradient = dense(gradient);
        let g = Geometry::new(&self.0, x, w);
        let (groups, area) = (self.0.groups, g.area());
        let slopes = values(&gradient);
        let packed = g.pack(values(w));
        let mut w_gradient = vec![0.0; if wanted[1] { packed.len() } else { 0 }];
        let mut x_gradient = vec![0.0; if wanted[0] { values(x).len() } else { 0 }];
        let mut matrix = vec![0.0; g.depth() * g.width()];
        for sample in 0..g.batch {
            for group in 0..groups {
                let planes = g.part(sample, group, g.channels, g.input_area());
                let slopes = Matrix::dense(&slopes[g.part(sample, group, g.outputs, area)], g.outputs, area);
                if wanted[1] {
                    g.unroll(&values(x)[planes.clone()], &mut matrix);
                    for (row, column) in g.products() {
                        let window = Matrix::strided(&matrix[column..], g.depth(), area, g.width());
                        let out = &mut w_gradient[g.block(group, row)];
                        multiply(out, g.depth(), slopes, window.transposed(), Into::Add);
                    }
                }
                if wanted[0] {
                    matrix.fill(0.0);
                    for (row, column) in g.products() {
                        let weights = Matrix::dense(&packed[g.block(group, row)], g.outputs, g.depth());
                        multiply(&mut matrix[column..], g.width(), weights.transposed(), slopes, Into::Add);
                    }
                    g.roll(&matrix, &mut x_gradient[planes]);
                }
            }
        }
        let b_gradient = wanted[2].then(|| {
            let channels = groups * g.outputs;
            let mut sums = vec![0.0; channels];
            for (index, plane) in slopes.chunks_exact(area).enumerate() {
                sums[index % channels] += plane.iter().sum::<f32>();
            }
            tensor(sums, &[channels])
        });
        let x_shape: [usize; 4] = shape(x);
        let w_shape: [usize; 4] = shape(w);
        [
            wanted[0].then(|| tensor(x_gradient, &x_shape)),
            wanted[1].then(|| tensor(g.unpack(w_gradient), &w_shape)),
            b_gradient,
        ]
    }
}

impl Fused<3> for Conv {
    type Saved = [FlexTensor; 2];

    fn forward(&self, [x, w, b]: [FlexTensor; 3]) -> (FlexTensor, Self::Saved) {
        let (x, w) = (dense(x), dense(w));
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

impl Fused<2> for Conv {
    type Saved = [FlexTensor; 2];

    fn forward(&self, [x, w]: [FlexTensor; 2]) -> (FlexTensor, Self::Saved) {
        let (x, w) = (dense(x), dense(w));
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
