//! The few operations that everything is lowered to, and their execution on a backend's primitives.

use burn_backend::ops::ConvOptions;
use burn_backend::tensor::{Device, FloatTensor, IntTensor};
use burn_backend::{Backend, Scalar, Shape, TensorData, TensorMetadata};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use crate::lower::Plan;
use crate::recurrent;

/// An operation with all its sizes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kernel {
    Unary(Unary),
    /// Operands of equal rank.
    Binary(Binary),
    /// Operands of equal rank; leading dimensions broadcast.
    MatMul,
    /// x `[rows, inputs]`, weight `[inputs, outputs]` or its transpose, bias `[outputs]`.
    Linear {
        transposed: bool,
    },
    Conv(Conv),
    MaxPool(Window),
    AveragePool(Window),
    /// A border around images.
    Pad {
        padding: [(usize, usize); 2],
        value: f32,
    },
    Softmax(usize),
    LogSoftmax(usize),
    /// Reduced dimensions stay, of size 1.
    Sum(Vec<usize>),
    Mean(Vec<usize>),
    Reshape(Vec<usize>),
    Permute(Vec<usize>),
    Expand(Vec<usize>),
    Slice {
        axis: usize,
        start: usize,
        end: usize,
    },
    Select {
        axis: usize,
        indices: Vec<usize>,
    },
    Concat(usize),
    Dropout(f32),
    /// x `[steps, batch, inputs]`, w, r, b, h and for an LSTM c.
    Recurrent(Cell),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Unary {
    Neg,
    Relu,
    LeakyRelu(f32),
    Tanh,
    Sigmoid,
    Exp,
    Log,
    Sqrt,
    AddScalar(f32),
    MulScalar(f32),
    DivScalar(f32),
    PowScalar(f32),
    Clamp { min: f32, max: f32 },
}

impl Unary {
    /// Whether a larger value never becomes a smaller one.
    pub(crate) fn keeps_order(self) -> bool {
        match self {
            Unary::Relu | Unary::Tanh | Unary::Sigmoid => true,
            Unary::LeakyRelu(slope) => slope >= 0.0,
            _ => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Pow,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Conv {
    pub(crate) stride: [usize; 2],
    pub(crate) padding: [(usize, usize); 2],
    pub(crate) dilation: [usize; 2],
    pub(crate) groups: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Window {
    pub(crate) kernel: [usize; 2],
    pub(crate) stride: [usize; 2],
    pub(crate) dilation: [usize; 2],
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cell {
    Elman(Activation),
    Gru { linear_before_reset: bool },
    Lstm,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Activation {
    Tanh,
    Relu,
    Sigmoid,
}

impl Cell {
    /// Blocks of rows in the weight matrices.
    pub(crate) fn gates(self) -> usize {
        match self {
            Cell::Elman(_) => 1,
            Cell::Gru { .. } => 3,
            Cell::Lstm => 4,
        }
    }
}

/// Runs a plan with `run` for each kernel. `dropout` draws the masks while training, and is none otherwise.
pub(crate) fn execute<B: Backend>(
    plan: &Plan,
    inputs: Vec<FloatTensor<B>>,
    parameters: &[FloatTensor<B>],
    constants: &[FloatTensor<B>],
    mut dropout: Option<&mut ChaCha8Rng>,
    run: impl Fn(&Kernel, Vec<FloatTensor<B>>) -> FloatTensor<B>,
) -> Vec<FloatTensor<B>> {
    let mut slots: Vec<Option<FloatTensor<B>>> = vec![None; plan.slots];
    for ((slot, _), tensor) in plan.inputs.iter().zip(inputs) {
        slots[*slot] = Some(tensor);
    }
    for (slot, tensor) in plan.parameters.iter().zip(parameters) {
        slots[*slot] = Some(tensor.clone());
    }
    for (constant, tensor) in plan.constants.iter().zip(constants) {
        slots[constant.slot] = Some(tensor.clone());
    }
    for step in &plan.steps {
        let operands = step.inputs.iter().zip(&step.last_use).map(|(&slot, &last)| {
            let tensor = if last { slots[slot].take() } else { slots[slot].clone() };
            tensor.expect("a plan uses a value only after the step that computes it")
        });
        let mut operands: Vec<FloatTensor<B>> = operands.collect();
        slots[step.output] = Some(match (&step.kernel, &mut dropout) {
            (Kernel::Dropout(_), None) => operands.swap_remove(0),
            (Kernel::Dropout(ratio), Some(random)) => drop_some::<B>(operands.swap_remove(0), *ratio, random),
            (kernel, _) => run(kernel, operands),
        });
    }
    let output = |(slot, _): &(usize, _)| slots[*slot].clone().expect("every output of a plan is computed");
    plan.outputs.iter().map(output).collect()
}

/// A tensor on the backend.
pub(crate) fn tensor<B: Backend>(data: Vec<f32>, shape: &[usize], device: &Device<B>) -> FloatTensor<B> {
    B::float_from_data(TensorData::new(data, self::shape(shape)), device)
}

/// Indices on the backend.
pub(crate) fn indices<B: Backend>(
    data: impl Iterator<Item = i64>,
    shape: &[usize],
    device: &Device<B>,
) -> IntTensor<B> {
    let data: Vec<i64> = data.collect();
    B::int_from_data(TensorData::new(data, Shape::from(shape.to_vec())), device)
}

/// The values of a tensor.
pub(crate) fn values<B: Backend>(tensor: FloatTensor<B>) -> Vec<f32> {
    let data = burn_backend::read_sync(B::float_into_data(tensor)).expect("CPU backends hand out their data");
    let (bytes, _, _) = data.into_parts();
    bytes
        .try_into_vec::<f32>()
        .unwrap_or_else(|bytes| bytes.as_chunks::<4>().0.iter().map(|w| f32::from_ne_bytes(*w)).collect())
}

fn scalar(value: f32) -> Scalar {
    Scalar::Float(f64::from(value))
}

/// The backend's shape: scalars are held as vectors of one, because burn's reductions expect a dimension.
fn shape(dims: &[usize]) -> Shape {
    Shape::from(if dims.is_empty() { vec![1] } else { dims.to_vec() })
}

/// Values dropped at random, the others scaled up to keep the mean.
fn drop_some<B: Backend>(x: FloatTensor<B>, ratio: f32, random: &mut ChaCha8Rng) -> FloatTensor<B> {
    let dims: Vec<usize> = x.shape().to_vec();
    let keep = 1.0 / (1.0 - ratio);
    let limit = (f64::from(ratio) * f64::from(u32::MAX)) as u32;
    let mask = (0..dims.iter().product()).map(|_| if random.next_u32() < limit { 0.0 } else { keep });
    let mask = tensor::<B>(mask.collect(), &dims, &x.device());
    B::float_mul(x, mask)
}

/// A kernel as a composition of burn's operations.
pub(crate) fn composed<B: Backend>(kernel: &Kernel, operands: Vec<FloatTensor<B>>) -> FloatTensor<B> {
    let mut operands = operands.into_iter();
    let mut next = || operands.next().expect("a kernel is emitted with its operands");
    match kernel {
        Kernel::Unary(op) => unary::<B>(*op, next()),
        Kernel::Binary(op) => {
            let (a, b) = (next(), next());
            match op {
                Binary::Add => B::float_add(a, b),
                Binary::Sub => B::float_sub(a, b),
                Binary::Mul => B::float_mul(a, b),
                Binary::Div => B::float_div(a, b),
                Binary::Pow => B::float_powf(a, b),
            }
        }
        Kernel::MatMul => {
            let (a, b) = (next(), next());
            B::float_matmul(a, b)
        }
        Kernel::Linear { transposed } => {
            let (x, weight, bias) = (next(), next(), next());
            B::linear(x, if *transposed { B::float_transpose(weight) } else { weight }, Some(bias))
        }
        Kernel::Conv(conv) => {
            let (x, weight, bias) = (next(), next(), operands.next());
            let options =
                ConvOptions::new_with_padding(conv.stride, conv.padding, conv.dilation, conv.groups);
            B::conv2d(x, weight, bias, options)
        }
        Kernel::MaxPool(window) => {
            B::max_pool2d(next(), window.kernel, window.stride, [0, 0], window.dilation, false)
        }
        Kernel::AveragePool(window) => {
            B::avg_pool2d(next(), window.kernel, window.stride, [0, 0], true, false)
        }
        Kernel::Pad { padding, value } => pad::<B>(next(), *padding, *value),
        Kernel::Softmax(dim) => B::softmax(next(), *dim),
        Kernel::LogSoftmax(dim) => B::log_softmax(next(), *dim),
        Kernel::Sum(dims) => dims.iter().fold(next(), |x, &dim| B::float_sum_dim(x, dim)),
        Kernel::Mean(dims) => dims.iter().fold(next(), |x, &dim| B::float_mean_dim(x, dim)),
        Kernel::Reshape(dims) => B::float_reshape(next(), shape(dims)),
        Kernel::Permute(perm) => B::float_permute(next(), perm),
        Kernel::Expand(dims) => B::float_expand(next(), shape(dims)),
        Kernel::Slice { axis, start, end } => slice::<B>(next(), *axis, *start, *end),
        Kernel::Select { axis, indices: chosen } => {
            let x = next();
            let chosen = indices::<B>(chosen.iter().map(|&i| i as i64), &[chosen.len()], &x.device());
            B::float_select(x, *axis, chosen)
        }
        Kernel::Concat(axis) => B::float_cat(operands.collect(), *axis),
        Kernel::Dropout(_) => next(),
        Kernel::Recurrent(cell) => {
            let operands = recurrent::Operands {
                x: next(),
                w: next(),
                r: next(),
                b: next(),
                h: next(),
                c: operands.next(),
            };
            recurrent::run::<B>(*cell, operands)
        }
    }
}

pub(crate) fn unary<B: Backend>(op: Unary, x: FloatTensor<B>) -> FloatTensor<B> {
    match op {
        Unary::Neg => B::float_neg(x),
        Unary::Relu => B::relu(x),
        Unary::LeakyRelu(slope) => B::leaky_relu(x, scalar(slope)),
        Unary::Tanh => B::float_tanh(x),
        Unary::Sigmoid => B::sigmoid(x),
        Unary::Exp => B::float_exp(x),
        Unary::Log => B::float_log(x),
        Unary::Sqrt => B::float_sqrt(x),
        Unary::AddScalar(value) => B::float_add_scalar(x, scalar(value)),
        Unary::MulScalar(value) => B::float_mul_scalar(x, scalar(value)),
        Unary::DivScalar(value) => B::float_div_scalar(x, scalar(value)),
        Unary::PowScalar(value) => B::float_powf_scalar(x, scalar(value)),
        Unary::Clamp { min, max } => B::float_clamp(x, scalar(min), scalar(max)),
    }
}

pub(crate) fn slice<B: Backend>(x: FloatTensor<B>, axis: usize, start: usize, end: usize) -> FloatTensor<B> {
    let dims = x.shape();
    let ranges: Vec<burn_backend::Slice> = (0..dims.num_dims())
        .map(|i| if i == axis { (start..end).into() } else { (0..dims[i]).into() })
        .collect();
    B::float_slice(x, &ranges)
}

fn pad<B: Backend>(x: FloatTensor<B>, padding: [(usize, usize); 2], value: f32) -> FloatTensor<B> {
    let old: Vec<usize> = x.shape().to_vec();
    let [(top, bottom), (left, right)] = padding;
    let new = [old[0], old[1], old[2] + top + bottom, old[3] + left + right];
    let border = tensor::<B>(vec![value; new.iter().product()], &new, &x.device());
    let inner =
        [(0..old[0]).into(), (0..old[1]).into(), (top..top + old[2]).into(), (left..left + old[3]).into()];
    B::float_slice_assign(border, &inner, x)
}
