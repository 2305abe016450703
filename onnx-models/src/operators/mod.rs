//! The supported operators: attributes parsed at load time, lowered to kernels once the input's shape is known.

pub(crate) mod broadcast;
pub(crate) mod conv;
pub(crate) mod dropout;
pub(crate) mod elementwise;
pub(crate) mod layout;
pub(crate) mod matmul;
pub(crate) mod normalize;
pub(crate) mod pool;
pub(crate) mod recurrent;
pub(crate) mod reduce;
pub(crate) mod shape_arithmetic;
pub(crate) mod softmax;

use crate::error::{GraphNodeError, NodeResult};
use crate::kernel;
use crate::lower::NodeLowering;
use crate::lowered_value::LoweredValue;
use crate::node_reader::NodeReader;

/// The operators a model may use. Those of [`shape_arithmetic`] are folded: they may only compute shapes.
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

/// Kind of a value: floats, which are computed, or integers, which are folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ElementKind {
    Float,
    Int,
}

/// An operator with its attributes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operator {
    Unary(elementwise::UnaryOp),
    Binary(elementwise::BinaryOp),
    Clip(elementwise::ClipOp),
    Gemm(matmul::GemmOp),
    MatMul,
    Conv(conv::ConvOp),
    Pool(pool::PoolOp),
    GlobalAveragePool,
    BatchNormalization(normalize::BatchNormOp),
    LayerNormalization(normalize::LayerNormOp),
    Softmax(softmax::SoftmaxOp),
    Reduce(reduce::ReduceOp),
    Layout(layout::LayoutOp),
    Integer(shape_arithmetic::IntegerOp),
    Dropout(dropout::DropoutOp),
    Recurrent(recurrent::RecurrentOp),
}

/// Reads one node; `None` if its operator is not supported.
pub(crate) fn parse(reader: &NodeReader<'_>) -> Option<NodeResult<Operator>> {
    let op = match reader.operator() {
        "Neg" | "Relu" | "LeakyRelu" | "Tanh" | "Sigmoid" | "Exp" | "Log" | "Sqrt" => {
            elementwise::UnaryOp::parse(reader).map(Operator::Unary)
        }
        "Add" | "Sub" | "Mul" | "Div" | "Pow" => elementwise::BinaryOp::parse(reader).map(Operator::Binary),
        "Clip" => elementwise::ClipOp::parse(reader).map(Operator::Clip),
        "Gemm" => matmul::GemmOp::parse(reader).map(Operator::Gemm),
        "MatMul" => reader.arity(2..=2, 1..=1).map(|()| Operator::MatMul),
        "Conv" => conv::ConvOp::parse(reader).map(Operator::Conv),
        "MaxPool" | "AveragePool" => pool::PoolOp::parse(reader).map(Operator::Pool),
        "GlobalAveragePool" => reader.arity(1..=1, 1..=1).map(|()| Operator::GlobalAveragePool),
        "BatchNormalization" => normalize::BatchNormOp::parse(reader).map(Operator::BatchNormalization),
        "LayerNormalization" => normalize::LayerNormOp::parse(reader).map(Operator::LayerNormalization),
        "Softmax" | "LogSoftmax" => softmax::SoftmaxOp::parse(reader).map(Operator::Softmax),
        "ReduceMean" | "ReduceSum" | "ReduceProd" => reduce::ReduceOp::parse(reader).map(Operator::Reduce),
        "Flatten" | "Reshape" | "Transpose" | "Squeeze" | "Unsqueeze" | "Concat" | "Slice" | "Gather"
        | "Split" | "Expand" | "Identity" => layout::LayoutOp::parse(reader).map(Operator::Layout),
        "Shape" | "Size" | "Cast" | "ConstantOfShape" | "Range" | "Equal" | "Where" => {
            shape_arithmetic::IntegerOp::parse(reader).map(Operator::Integer)
        }
        "Dropout" => dropout::DropoutOp::parse(reader).map(Operator::Dropout),
        "RNN" | "GRU" | "LSTM" => recurrent::RecurrentOp::parse(reader).map(Operator::Recurrent),
        _ => return None,
    };
    Some(op.and_then(|op| reader.finish().map(|()| op)))
}

impl Operator {
    /// The kind of the outputs, given the inputs'; refuses what the operator cannot take.
    pub(crate) fn kind(&self, inputs: &[Option<ElementKind>]) -> NodeResult<ElementKind> {
        let first = inputs.first().copied().flatten();
        match self {
            Operator::Integer(op) => op.kind(inputs),
            // The first input is the data, the others are shapes, axes or indices.
            Operator::Layout(layout::LayoutOp::Concat { .. }) => {
                shape_arithmetic::same_kind(inputs)?;
                first.ok_or_else(missing)
            }
            Operator::Layout(_) => {
                integers(inputs, 1)?;
                first.ok_or_else(missing)
            }
            Operator::Reduce(op) => {
                integers(inputs, 1)?;
                op.kind(first.ok_or_else(missing)?)
            }
            Operator::Binary(op) => {
                shape_arithmetic::same_kind(inputs)?;
                op.kind(first.ok_or_else(missing)?)
            }
            Operator::Unary(elementwise::UnaryOp(kernel::UnaryKernel::Neg)) => first.ok_or_else(missing),
            // ratio and training_mode: a float and a boolean.
            Operator::Dropout(_) => floats(&inputs[..inputs.len().min(2)]),
            _ => floats(inputs),
        }
    }

    /// Adds the kernels for this node to the plan and returns its lowered outputs.
    pub(crate) fn lower(&self, node: &mut NodeLowering<'_, '_>) -> NodeResult<Vec<LoweredValue>> {
        match self {
            Operator::Unary(op) => op.lower(node),
            Operator::Binary(op) => op.lower(node),
            Operator::Clip(op) => op.lower(node),
            Operator::Gemm(op) => op.lower(node),
            Operator::MatMul => matmul::lower(node),
            Operator::Conv(op) => op.lower(node),
            Operator::Pool(op) => op.lower(node),
            Operator::GlobalAveragePool => pool::global_average(node),
            Operator::BatchNormalization(op) => op.lower(node),
            Operator::LayerNormalization(op) => op.lower(node),
            Operator::Softmax(op) => op.lower(node),
            Operator::Reduce(op) => op.lower(node),
            Operator::Layout(op) => op.lower(node),
            Operator::Integer(op) => op.lower(node),
            Operator::Dropout(op) => op.lower(node),
            Operator::Recurrent(op) => op.lower(node),
        }
    }

    /// Number of outputs that are implemented; `None` is all.
    pub(crate) fn outputs(&self) -> Option<usize> {
        match self {
            Operator::Layout(_) | Operator::Recurrent(_) => None,
            _ => Some(1),
        }
    }
}

/// True if an operator takes this input as it is in the file and never trains it: running statistics, bounds, ratios and
/// exponents.
pub(crate) fn is_fixed_input(operator: &str, input: usize) -> bool {
    match operator {
        "BatchNormalization" => is_running_statistic(operator, input),
        "Clip" | "Dropout" | "Pow" => input >= 1,
        _ => false,
    }
}

/// True if this input is the running mean or variance of a normalisation.
pub(crate) fn is_running_statistic(operator: &str, input: usize) -> bool {
    operator == "BatchNormalization" && input >= 3
}

fn missing() -> GraphNodeError {
    GraphNodeError::Input { index: 0, why: "is missing".to_owned() }
}

fn floats(inputs: &[Option<ElementKind>]) -> NodeResult<ElementKind> {
    match inputs.iter().position(|kind| *kind == Some(ElementKind::Int)) {
        Some(index) => {
            Err(GraphNodeError::Input { index, why: "holds integers, expected floats".to_owned() })
        }
        None => Ok(ElementKind::Float),
    }
}

fn integers(inputs: &[Option<ElementKind>], from: usize) -> NodeResult<()> {
    match inputs.iter().skip(from).position(|kind| *kind == Some(ElementKind::Float)) {
        Some(index) => Err(GraphNodeError::Input {
            index: from + index,
            why: "holds floats, expected integers".to_owned(),
        }),
        None => Ok(()),
    }
}

/// An axis counted from the end when negative.
pub(crate) fn axis(axis: i64, rank: usize) -> NodeResult<usize> {
    let signed = if axis < 0 { axis.checked_add(rank as i64) } else { Some(axis) };
    match signed.and_then(|a| usize::try_from(a).ok()) {
        Some(a) if a < rank => Ok(a),
        _ => Err(GraphNodeError::Shapes(format!("axis {axis} of {rank} dimensions"))),
    }
}
