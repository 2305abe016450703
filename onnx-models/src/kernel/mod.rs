//! Kernels: the few operations that every operator is lowered to.

pub(crate) mod composed;
mod composed_recurrent;
pub(crate) mod execute;

/// An operation with all its sizes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kernel {
    Unary(UnaryKernel),
    /// Operands of equal rank.
    Binary(BinaryKernel),
    /// Operands of equal rank; leading dimensions broadcast.
    MatMul,
    /// x `[rows, inputs]`, weight `[inputs, outputs]` or its transpose, bias `[outputs]`.
    Linear {
        transposed: bool,
    },
    Conv(ConvKernel),
    MaxPool(PoolWindow),
    AveragePool(PoolWindow),
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
    Recurrent(RecurrentCell),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum UnaryKernel {
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

impl UnaryKernel {
    /// True if the function is non-decreasing.
    pub(crate) fn is_non_decreasing(self) -> bool {
        match self {
            UnaryKernel::Relu | UnaryKernel::Tanh | UnaryKernel::Sigmoid => true,
            UnaryKernel::LeakyRelu(slope) => slope >= 0.0,
            _ => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum BinaryKernel {
    Add,
    Sub,
    Mul,
    Div,
    Pow,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConvKernel {
    pub(crate) stride: [usize; 2],
    pub(crate) padding: [(usize, usize); 2],
    pub(crate) dilation: [usize; 2],
    pub(crate) groups: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PoolWindow {
    pub(crate) kernel: [usize; 2],
    pub(crate) stride: [usize; 2],
    pub(crate) dilation: [usize; 2],
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RecurrentCell {
    Elman(CellActivation),
    Gru { linear_before_reset: bool },
    Lstm,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum CellActivation {
    Tanh,
    Relu,
    Sigmoid,
}

impl RecurrentCell {
    /// Blocks of rows in the weight matrices.
    pub(crate) fn gates(self) -> usize {
        match self {
            RecurrentCell::Elman(_) => 1,
            RecurrentCell::Gru { .. } => 3,
            RecurrentCell::Lstm => 4,
        }
    }
}
