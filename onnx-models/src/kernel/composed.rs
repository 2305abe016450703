//! Kernels composed of burn's operations, with burn's derivatives.

use burn_backend::ops::ConvOptions;
use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, Scalar, TensorMetadata};

use crate::kernel::composed_recurrent::{self, RecurrentOperands};
use crate::kernel::execute::{indices, shape, tensor};
use crate::kernel::{BinaryKernel, Kernel, UnaryKernel};

/// A kernel as a composition of burn's operations.
pub(crate) fn composed<B: Backend>(kernel: &Kernel, operands: Vec<FloatTensor<B>>) -> FloatTensor<B> {
    let mut operands = operands.into_iter();
    let mut next = || operands.next().expect("a kernel is emitted with its operands");
    match kernel {
        Kernel::Unary(op) => unary::<B>(*op, next()),
        Kernel::Binary(op) => {
            let (a, b) = (next(), next());
            match op {
                BinaryKernel::Add => B::float_add(a, b),
                BinaryKernel::Sub => B::float_sub(a, b),
                BinaryKernel::Mul => B::float_mul(a, b),
                BinaryKernel::Div => B::float_div(a, b),
                BinaryKernel::Pow => B::float_powf(a, b),
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
            let operands = RecurrentOperands {
                x: next(),
                w: next(),
                r: next(),
                b: next(),
                h: next(),
                c: operands.next(),
            };
            composed_recurrent::run::<B>(*cell, operands)
        }
    }
}

pub(crate) fn unary<B: Backend>(op: UnaryKernel, x: FloatTensor<B>) -> FloatTensor<B> {
    match op {
        UnaryKernel::Neg => B::float_neg(x),
        UnaryKernel::Relu => B::relu(x),
        UnaryKernel::LeakyRelu(slope) => B::leaky_relu(x, scalar(slope)),
        UnaryKernel::Tanh => B::float_tanh(x),
        UnaryKernel::Sigmoid => B::sigmoid(x),
        UnaryKernel::Exp => B::float_exp(x),
        UnaryKernel::Log => B::float_log(x),
        UnaryKernel::Sqrt => B::float_sqrt(x),
        UnaryKernel::AddScalar(value) => B::float_add_scalar(x, scalar(value)),
        UnaryKernel::MulScalar(value) => B::float_mul_scalar(x, scalar(value)),
        UnaryKernel::DivScalar(value) => B::float_div_scalar(x, scalar(value)),
        UnaryKernel::PowScalar(value) => B::float_powf_scalar(x, scalar(value)),
        UnaryKernel::Clamp { min, max } => B::float_clamp(x, scalar(min), scalar(max)),
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

fn scalar(value: f32) -> Scalar {
    Scalar::Float(f64::from(value))
}
