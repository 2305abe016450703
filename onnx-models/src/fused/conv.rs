//! Convolutions as matrix products.
//!
//! Each image is turned channels-last, so that what a kernel row sees of one image row is one run of memory. These runs
//! are the rows of a matrix, one for each place along an image row; the products for the kernel's rows read that matrix
//! from different lines on. A kernel of seven rows thus costs a seventh of the copying of a full unrolling. Where runs
//! would be short (few channels) the kernel's rows are unrolled too, into one product.

use burn_flex::FlexTensor;

use super::gemm::{Into, Matrix, multiply};
use super::{Fused, dense, shape, tensor, values};
use crate::kernel;

#[derive(Debug, Clone)]
pub(super) struct Conv(pub(super) kernel::Conv);

/// Runs shorter than this are unrolled along the kernel's rows too.
const RUN_MIN: usize = 48;

/// Matrices whose rows are a multiple of this long are multiplied in place, without being packed again.
const LANES: usize = 16;

/// All sizes of one convolution; channels and outputs are those of one group.
struct Geometry<'a> {
    options: &'a kernel::Conv,
    batch: usize,
    channels: usize,
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
        let full = rows == 1 || channels * columns < RUN_MIN;
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

    /// Kernel rows in one row of the matrix.
    fn unrolled(&self) -> usize {
        if self.full { self.kernel[0] } else { 1 }
    }

    /// Kernel rows that are a product of their own.
    fn products(&self) -> usize {
        if self.full { 1 } else { self.kernel[0] }
    }

    /// Image rows of one phase: those that are a multiple of the stride apart.
    fn phase(&self) -> usize {
        self.options.dilation[0] * (self.kernel[0] - 1) / self.options.stride[0] + self.output[0]
    }

    /// Image rows, phase by phase, or output rows if everything is unrolled.
    fn lines(&self) -> usize {
        if self.full { self.output[0] } else { self.options.stride[0] * self.phase() }
    }

    /// The first row of the matrix that the product for a kernel row reads.
    fn first(&self, kernel_row: usize) -> usize {
        let reach = kernel_row * self.options.dilation[0];
        let stride = self.options.stride[0];
        (reach % stride * self.phase() + reach / stride) * self.output[1]
    }

    /// Values of one row of the matrix that are used, and its length in memory.
    fn depth(&self) -> usize {
        self.unrolled() * self.kernel[1] * self.channels
    }

    fn stride(&self) -> usize {
        self.depth().next_multiple_of(LANES)
    }

    /// Pixels of an image row with its padding.
    fn padded(&self) -> usize {
        self.input[1] + self.options.padding[1].0 + self.options.padding[1].1
    }

    /// The image and the matrix, empty.
    fn buffers(&self) -> (Vec<f32>, Vec<f32>) {
        let image = self.input[0] * self.padded() * self.channels;
        (vec![0.0; image], vec![0.0; self.lines() * self.output[1] * self.stride()])
    }

    /// Calls `f` with every run of memory: its place in the matrix, its place in the image if it has one, its length.
    fn each_run(&self, mut f: impl FnMut(usize, Option<usize>, usize)) {
        let ([stride, step], [dilation, gap]) = (self.options.stride, self.options.dilation);
        let (top, phase, channels) = (self.options.padding[0].0, self.phase(), self.channels);
        let (runs, length) =
            if gap == 1 { (1, self.kernel[1] * channels) } else { (self.kernel[1], channels) };
        for line in 0..self.lines() {
            for row in 0..self.unrolled() {
                let y = if self.full {
                    line * stride + row * dilation
                } else {
                    line % phase * stride + line / phase
                };
                let y = y.checked_sub(top).filter(|&y| y < self.input[0]);
                for x in 0..self.output[1] {
                    let place = (line * self.output[1] + x) * self.stride() + row * self.kernel[1] * channels;
                    let source = y.map(|y| (y * self.padded() + x * step) * channels);
                    for run in 0..runs {
                        f(place + run * channels, source.map(|s| s + run * gap * channels), length);
                    }
                }
            }
        }
    }

    /// Channels last, with the border that is always there.
    fn unroll(&self, planes: &[f32], image: &mut [f32], matrix: &mut [f32]) {
        self.each_pixel(|plane, pixel| image[pixel] = planes[plane]);
        self.each_run(|place, source, length| {
            let run = &mut matrix[place..place + length];
            match source {
                // Most runs are short: a loop is quicker than a call.
                Some(source) if length < 16 => {
                    run.iter_mut().zip(&image[source..]).for_each(|(to, x)| *to = *x)
                }
                Some(source) => run.copy_from_slice(&image[source..source + length]),
                None => run.fill(0.0),
            }
        });
    }

    /// The adjoint of [`Geometry::unroll`].
    fn roll(&self, matrix: &[f32], image: &mut [f32], planes: &mut [f32]) {
        image.fill(0.0);
        self.each_run(|place, source, length| {
            if let Some(source) = source {
                let run = &matrix[place..place + length];
                image[source..source + length].iter_mut().zip(run).for_each(|(to, x)| *to += x);
            }
        });
        self.each_pixel(|plane, pixel| planes[plane] = image[pixel]);
    }

    /// Calls `f` with the place of every pixel in the planes, and in the image.
    fn each_pixel(&self, mut f: impl FnMut(usize, usize)) {
        let ([height, width], left) = (self.input, self.options.padding[1].0);
        for channel in 0..self.channels {
            for y in 0..height {
                let plane = (channel * height + y) * width;
                let pixel = (y * self.padded() + left) * self.channels + channel;
                (0..width).for_each(|x| f(plane + x, pixel + x * self.channels));
            }
        }
    }

    /// Calls `f` with the place of every weight in the file, its product, its output, and its place in a matrix row.
    fn each_weight(&self, mut f: impl FnMut(usize, usize, usize, usize)) {
        let [rows, columns] = self.kernel;
        let mut place = 0;
        for group in 0..self.options.groups {
            for output in 0..self.outputs {
                for channel in 0..self.channels {
                    for row in 0..rows {
                        let (product, row) = if self.full { (group, row) } else { (group * rows + row, 0) };
                        for column in 0..columns {
                            f(place, product, output, (row * columns + column) * self.channels + channel);
                            place += 1;
                        }
                    }
                }
            }
        }
    }

    /// Weights of every product as `[outputs, depth]`.
    fn by_output(&self, w: &[f32]) -> Vec<f32> {
        let size = self.outputs * self.stride();
        let mut packed = vec![0.0; self.options.groups * self.products() * size];
        self.each_weight(|place, product, output, d| {
            packed[product * size + output * self.stride() + d] = w[place]
        });
        packed
    }

    /// The inverse of [`Geometry::by_output`].
    fn as_in_file(&self, packed: &[f32], count: usize) -> Vec<f32> {
        let size = self.outputs * self.stride();
        let mut w = vec![0.0; count];
        self.each_weight(|place, product, output, d| {
            w[place] = packed[product * size + output * self.stride() + d]
        });
        w
    }

    /// Weights of every product as `[depth, outputs]`.
    fn by_depth(&self, w: &[f32]) -> Vec<f32> {
        let size = self.outputs * self.stride();
        let mut packed = vec![0.0; self.options.groups * self.products() * size];
        self.each_weight(|place, product, output, d| {
            packed[product * size + d * self.outputs + output] = w[place]
        });
        packed
    }

    /// The part of a `[batch, channels, …]` tensor that belongs to one sample and group.
    fn part(&self, sample: usize, group: usize, size: usize) -> std::ops::Range<usize> {
        let index = sample * self.options.groups + group;
        index * size..(index + 1) * size
    }
}

impl Conv {
    fn run(&self, x: &FlexTensor, w: &FlexTensor, bias: Option<&FlexTensor>) -> FlexTensor {
        let g = Geometry::new(&self.0, x, w);
        let (groups, area, size) = (self.0.groups, g.area(), g.outputs * g.stride());
        let all = groups * g.outputs;
        let bias = bias.map_or_else(|| vec![0.0; all], |bias| values(bias).to_vec());
        // Straight into planes if that packs less than turning the result does.
        let straight = g.full && g.depth() < g.outputs;
        let packed = if straight { g.by_output(values(w)) } else { g.by_depth(values(w)) };
        let mut out = Vec::with_capacity(g.batch * all * area);
        let (mut image, mut matrix) = g.buffers();
        for sample in 0..g.batch {
            for group in 0..groups {
                g.unroll(
                    &values(x)[g.part(sample, group, g.channels * g.input_area())],
                    &mut image,
                    &mut matrix,
                );
                let bias = &bias[group * g.outputs..(group + 1) * g.outputs];
                if straight {
                    let start = out.len();
                    bias.iter().for_each(|&b| out.extend(std::iter::repeat_n(b, area)));
                    let weights =
                        Matrix::dense(&packed[group * size..(group + 1) * size], g.outputs, g.stride());
                    let pixels = Matrix::dense(&matrix, area, g.stride());
                    multiply(&mut out[start..], area, weights, pixels.transposed(), Into::Add);
                    continue;
                }
                let mut pixels = bias.repeat(area);
                for row in 0..g.products() {
                    let product = group * g.products() + row;
                    let weights =
                        Matrix::dense(&packed[product * size..(product + 1) * size], g.stride(), g.outputs);
                    let window = Matrix::dense(&matrix[g.first(row) * g.stride()..], area, g.stride());
                    multiply(&mut pixels, g.outputs, window, weights, Into::Add);
                }
                for output in 0..g.outputs {
                    out.extend((0..area).map(|pixel| pixels[pixel * g.outputs + output]));
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
        let (groups, area, size) = (self.0.groups, g.area(), g.outputs * g.stride());
        let slopes = values(&gradient);
        let packed = if wanted[0] { g.by_output(values(w)) } else { vec![] };
        let mut w_gradient = vec![0.0; if wanted[1] { groups * g.products() * size } else { 0 }];
        let mut x_gradient = vec![0.0; if wanted[0] { values(x).len() } else { 0 }];
        let (mut image, mut matrix) = g.buffers();
        for sample in 0..g.batch {
            for group in 0..groups {
                let planes = g.part(sample, group, g.channels * g.input_area());
                let slopes = Matrix::dense(&slopes[g.part(sample, group, g.outputs * area)], g.outputs, area);
                let product =
                    |row| (group * g.products() + row) * size..(group * g.products() + row + 1) * size;
                if wanted[1] {
                    g.unroll(&values(x)[planes.clone()], &mut image, &mut matrix);
                    for row in 0..g.products() {
                        let window = Matrix::dense(&matrix[g.first(row) * g.stride()..], area, g.stride());
                        multiply(&mut w_gradient[product(row)], g.stride(), slopes, window, Into::Add);
                    }
                }
                if wanted[0] {
                    matrix.fill(0.0);
                    for row in 0..g.products() {
                        let weights = Matrix::dense(&packed[product(row)], g.outputs, g.stride());
                        let window = &mut matrix[g.first(row) * g.stride()..];
                        multiply(window, g.stride(), slopes.transposed(), weights, Into::Add);
                    }
                    g.roll(&matrix, &mut image, &mut x_gradient[planes]);
                    // The next image finds its border clear.
                    image.fill(0.0);
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
        let (x_shape, w_shape): ([usize; 4], [usize; 4]) = (shape(x), shape(w));
        [
            wanted[0].then(|| tensor(x_gradient, &x_shape)),
            wanted[1].then(|| tensor(g.as_in_file(&w_gradient, values(w).len()), &w_shape)),
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
