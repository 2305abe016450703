//! The operators: each family reads its attributes once at load time, and lowers itself to kernels once the input's
//! shape is known.

pub(crate) mod broadcast;
pub(crate) mod conv;
pub(crate) mod elementwise;
pub(crate) mod integer;
pub(crate) mod layout;
pub(crate) mod matmul;
pub(crate) mod normalize;
pub(crate) mod pool;
pub(crate) mod recurrent;
pub(crate) mod reduce;
pub(crate) mod regularize;
pub(crate) mod softmax;

use crate::error::{NodeError, NodeResult};
use crate::kernel;
use crate::lower::{Known, Node};
use crate::reader::Reader;

/// The operators a model may use. Those of [`integer`] are folded: they may only compute shapes.
pub(crate) const SUPPORTED: &[&str] = &[
    "Add",
    "AveragePool",
    "BatchNormalization",
    "Cast",
    "Clip",
    "Concat",
    "Constant",
    "ConstantOfShape",
    "Conv",
    "Div",
    "Dropout",
    "Equal",
    "Exp",
    "Expand",
    "Flatten",
    "GRU",
    "Gather",
    "Gemm",
    "GlobalAveragePool",
    "Identity",
    "LSTM",
    "LayerNormalization",
    "LeakyRelu",
    "Log",
    "LogSoftmax",
    "MatMul",
    "MaxPool",
    "Mul",
    "Neg",
    "Pow",
    "RNN",
    "Range",
    "ReduceMean",
    "ReduceProd",
    "ReduceSum",
    "Relu",
    "Reshape",
    "Shape",
    "Sigmoid",
    "Size",
    "Slice",
    "Softmax",
    "Split",
    "Sqrt",
    "Squeeze",
    "Sub",
    "Tanh",
    "Transpose",
    "Unsqueeze",
    "Where",
];

/// Whether a value holds floats, which are computed, or integers, which are folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Float,
    Int,
}

/// An operator with its attributes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Op {
    Unary(elementwise::Unary),
    Binary(elementwise::Binary),
    Clip(elementwise::Clip),
    Gemm(matmul::Gemm),
    MatMul,
    Conv(conv::Conv),
    Pool(pool::Pool),
    GlobalAveragePool,
    BatchNormalization(normalize::Batch),
    LayerNormalization(normalize::Layer),
    Softmax(softmax::Softmax),
    Reduce(reduce::Reduce),
    Layout(layout::Layout),
    Integer(integer::Integer),
    Dropout(regularize::Dropout),
    Recurrent(recurrent::Recurrent),
}

/// Reads one node; `None` if its operator is not supported.
pub(crate) fn parse(reader: &Reader<'_>) -> Option<NodeResult<Op>> {
    let op = match reader.operator() {
        "Neg" | "Relu" | "LeakyRelu" | "Tanh" | "Sigmoid" | "Exp" | "Log" | "Sqrt" => {
            elementwise::Unary::parse(reader).map(Op::Unary)
        }
        "Add" | "Sub" | "Mul" | "Div" | "Pow" => elementwise::Binary::parse(reader).map(Op::Binary),
        "Clip" => elementwise::Clip::parse(reader).map(Op::Clip),
        "Gemm" => matmul::Gemm::parse(reader).map(Op::Gemm),
        "MatMul" => reader.arity(2..=2, 1..=1).map(|()| Op::MatMul),
        "Conv" => conv::Conv::parse(reader).map(Op::Conv),
        "MaxPool" | "AveragePool" => pool::Pool::parse(reader).map(Op::Pool),
        "GlobalAveragePool" => reader.arity(1..=1, 1..=1).map(|()| Op::GlobalAveragePool),
        "BatchNormalization" => normalize::Batch::parse(reader).map(Op::BatchNormalization),
        "LayerNormalization" => normalize::Layer::parse(reader).map(Op::LayerNormalization),
        "Softmax" | "LogSoftmax" => softmax::Softmax::parse(reader).map(Op::Softmax),
        "ReduceMean" | "ReduceSum" | "ReduceProd" => reduce::Reduce::parse(reader).map(Op::Reduce),
        "Flatten" | "Reshape" | "Transpose" | "Squeeze" | "Unsqueeze" | "Concat" | "Slice" | "Gather"
        | "Split" | "Expand" | "Identity" => layout::Layout::parse(reader).map(Op::Layout),
        "Shape" | "Size" | "Cast" | "ConstantOfShape" | "Range" | "Equal" | "Where" => {
            integer::Integer::parse(reader).map(Op::Integer)
        }
        "Dropout" => regularize::Dropout::parse(reader).map(Op::Dropout),
        "RNN" | "GRU" | "LSTM" => recurrent::Recurrent::parse(reader).map(Op::Recurrent),
        _ => return None,
    };
    Some(op.and_then(|op| reader.finish().map(|()| op)))
}

impl Op {
    /// The kind of the outputs, given the inputs'; refuses what the operator cannot take.
    pub(crate) fn kind(&self, inputs: &[Option<Kind>]) -> NodeResult<Kind> {
        let first = inputs.first().copied().flatten();
        match self {
            Op::Integer(op) => op.kind(inputs),
            // The first input is the data, the others are shapes, axes or indices.
            Op::Layout(layout::Layout::Concat { .. }) => {
                integer::same_kind(inputs)?;
                first.ok_or_else(missing)
            }
            Op::Layout(_) => {
                integers(inputs, 1)?;
                first.ok_or_else(missing)
            }
            Op::Reduce(op) => {
                integers(inputs, 1)?;
                op.kind(first.ok_or_else(missing)?)
            }
            Op::Binary(op) => {
                integer::same_kind(inputs)?;
                op.kind(first.ok_or_else(missing)?)
            }
            Op::Unary(elementwise::Unary(kernel::Unary::Neg)) => first.ok_or_else(missing),
            // ratio and training_mode: a float and a boolean.
            Op::Dropout(_) => floats(&inputs[..inputs.len().min(2)]),
            _ => floats(inputs),
        }
    }

    /// Adds the kernels for this node to the plan and returns what is known of its outputs.
    pub(crate) fn lower(&self, node: &mut Node<'_, '_>) -> NodeResult<Vec<Known>> {
        match self {
            Op::Unary(op) => op.lower(node),
            Op::Binary(op) => op.lower(node),
            Op::Clip(op) => op.lower(node),
            Op::Gemm(op) => op.lower(node),
            Op::MatMul => matmul::lower(node),
            Op::Conv(op) => op.lower(node),
            Op::Pool(op) => op.lower(node),
            Op::GlobalAveragePool => pool::global_average(node),
            Op::BatchNormalization(op) => op.lower(node),
            Op::LayerNormalization(op) => op.lower(node),
            Op::Softmax(op) => op.lower(node),
            Op::Reduce(op) => op.lower(node),
            Op::Layout(op) => op.lower(node),
            Op::Integer(op) => op.lower(node),
            Op::Dropout(op) => op.lower(node),
            Op::Recurrent(op) => op.lower(node),
        }
    }

    /// How many of the outputs are implemented; `None` is all.
    pub(crate) fn outputs(&self) -> Option<usize> {
        match self {
            Op::Layout(_) | Op::Recurrent(_) => None,
            _ => Some(1),
        }
    }
}

/// Whether an operator takes this input as it is in the file and never trains it: running statistics, bounds, ratios and
/// exponents.
pub(crate) fn is_fixed_input(operator: &str, input: usize) -> bool {
    match operator {
        "BatchNormalization" => is_running_statistic(operator, input),
        "Clip" | "Dropout" | "Pow" => input >= 1,
        _ => false,
    }
}

/// Whether this input is the running mean or variance of a normalisation.
pub(crate) fn is_running_statistic(operator: &str, input: usize) -> bool {
    operator == "BatchNormalization" && input >= 3
}

fn missing() -> NodeError {
    NodeError::Input { index: 0, why: "is missing".to_owned() }
}

fn floats(inputs: &[Option<Kind>]) -> NodeResult<Kind> {
    match inputs.iter().position(|kind| *kind == Some(Kind::Int)) {
        Some(index) => Err(NodeError::Input { index, why: "holds integers, expected floats".to_owned() }),
        None => Ok(Kind::Float),
    }
}

fn integers(inputs: &[Option<Kind>], from: usize) -> NodeResult<()> {
    match inputs.iter().skip(from).position(|kind| *kind == Some(Kind::Float)) {
        Some(index) => {
            Err(NodeError::Input { index: from + index, why: "holds floats, expected integers".to_owned() })
        }
        None => Ok(()),
    }
}

/// An axis counted from the end when negative.
pub(crate) fn axis(axis: i64, rank: usize) -> NodeResult<usize> {
    let signed = if axis < 0 { axis.checked_add(rank as i64) } else { Some(axis) };
    match signed.and_then(|a| usize::try_from(a).ok()) {
        Some(a) if a < rank => Ok(a),
        _ => Err(NodeError::Shapes(format!("axis {axis} of {rank} dimensions"))),
    }
}
