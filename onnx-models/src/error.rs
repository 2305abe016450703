//! Errors of loading, training, running and exporting a model.

use crate::operators;

/// An error of a model; each message names the place and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The bytes are not a protobuf message of ONNX's schema.
    #[error("not an ONNX file: {0}")]
    Decode(String),
    /// Something in the file or in a run exceeds [`ModelLimits`](crate::ModelLimits).
    #[error("{what} needs {found}, beyond the limit of {limit}; raise limits.{name} if the file is trusted")]
    Limit {
        /// The measured quantity.
        what: String,
        /// The measured figure.
        found: u64,
        /// The figure allowed.
        limit: u64,
        /// The field of [`ModelLimits`](crate::ModelLimits) to raise.
        name: &'static str,
    },
    /// The operator set is outside what is implemented.
    #[error(
        "operator set {found} is not supported; supported are 11 to 21: export the model again with one of these"
    )]
    Opset {
        /// The version the file declares for the default domain; 0 if it declares none.
        found: i64,
    },
    /// An operator that is not implemented.
    #[error("node `{node}`: operator {operator} is not supported; supported are {}", operators::SUPPORTED.join(", "))]
    Operator {
        /// The node's name, or its first output's.
        node: String,
        /// The operator with its domain.
        operator: String,
    },
    /// An operator that is implemented, used in a way that is not, or is not valid.
    #[error("node `{node}` ({operator}): {cause}")]
    Node {
        /// The node's name, or its first output's.
        node: String,
        /// The operator.
        operator: String,
        /// The error.
        cause: GraphNodeError,
    },
    /// A tensor whose type, shape and data do not belong together.
    #[error("tensor `{name}`: {cause}")]
    Tensor {
        /// The tensor's name.
        name: String,
        /// The error.
        cause: TensorError,
    },
    /// The graph as a whole is not one that can be trained.
    #[error("graph: {0}")]
    Graph(GraphError),
    /// A name in the list of trainable parameters that cannot be trained.
    #[error("`{name}` cannot be trained: {why}; trainable here are {available}")]
    Trainable {
        /// The name in the list.
        name: String,
        /// Why it is refused.
        why: &'static str,
        /// Names that could be listed instead.
        available: String,
    },
    /// A name in the list of personal parameters that cannot be one.
    #[error("metadata `{key}` names `{name}`: {why}; parameters are {available}", key = crate::personal::PERSONAL)]
    Personal {
        /// The name in the list.
        name: String,
        /// Why it is refused.
        why: &'static str,
        /// The parameters of the file.
        available: String,
    },
    /// A vector of personal weights of the wrong length.
    #[error("{found} personal weights given, the model has {expected} personal parameters")]
    PersonalWeights {
        /// The length given.
        found: usize,
        /// Number of the model's personal values.
        expected: usize,
    },
    /// A weight vector of the wrong length.
    #[error("{found} weights given, the model has {expected} parameters")]
    Weights {
        /// The length given.
        found: usize,
        /// The model's dimension.
        expected: usize,
    },
    /// Inputs whose shape or length do not fit the model.
    #[error("inputs of shape {shape:?} with {values} values do not fit the model's input {expected}")]
    Inputs {
        /// The shape given.
        shape: Vec<usize>,
        /// The number of values given.
        values: usize,
        /// The shape the file declares, `?` where it is free.
        expected: String,
    },
    /// Hidden states that do not fit the model's further inputs.
    #[error("hidden states of {found:?} values do not fit the model's further inputs {expected:?}")]
    States {
        /// The number of values of each state given.
        found: Vec<usize>,
        /// The shapes of the further inputs.
        expected: Vec<Vec<usize>>,
    },
    /// Targets that do not fit the output or the loss.
    #[error("targets do not fit an output of shape {output:?}: {why}")]
    Targets {
        /// The output's shape.
        output: Vec<usize>,
        /// The fault.
        why: String,
    },
    /// Quantile levels that are none, or not one for each output column.
    #[error(
        "metadata `{key}` = `{value}`: {why}; name one level between 0 and 1 for each output column, ascending, as in \
         `0.1,0.5,0.9`",
        key = crate::quantiles::QUANTILES
    )]
    Quantiles {
        /// The value in the metadata.
        value: String,
        /// What is wrong.
        why: String,
    },
    /// A loss by another name.
    #[error("loss `{0}` is not known; use mse, cross-entropy, nll, huber or pinball")]
    Loss(String),
    /// A training setting outside its range.
    #[error("{name} = {value} is out of range: {why}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The range.
        why: &'static str,
    },
    /// The inference engine refused a model that the trainer accepts.
    #[error("inference: {0}")]
    Inference(String),
}

/// An error in one node of the graph.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GraphNodeError {
    /// An attribute this operator does not have here.
    #[error("attribute `{name}` is not supported; supported are {supported}")]
    Attribute {
        /// The attribute.
        name: String,
        /// The attributes that are read for this operator.
        supported: String,
    },
    /// An attribute that is missing, or of the wrong type or value.
    #[error("attribute `{name}`: {why}")]
    AttributeValue {
        /// The attribute.
        name: &'static str,
        /// The expectation.
        why: String,
    },
    /// A wrong number of inputs or outputs.
    #[error("{found} {what}, expected {expected}")]
    Arity {
        /// Inputs or outputs.
        what: &'static str,
        /// Their number.
        found: usize,
        /// The greatest number allowed.
        expected: String,
    },
    /// An input that is missing or of the wrong kind.
    #[error("input {index}: {why}")]
    Input {
        /// The input's position.
        index: usize,
        /// The expectation.
        why: String,
    },
    /// Shapes that do not fit together.
    #[error("shapes do not fit: {0}")]
    Shapes(String),
}

/// An error in one tensor.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TensorError {
    /// An element type that is not implemented.
    #[error("element type {0} is not supported; supported are FLOAT, INT64, INT32 and BOOL")]
    Type(String),
    /// A negative or overflowing dimension.
    #[error("shape {0:?} is not valid")]
    Shape(Vec<i64>),
    /// Data that do not fill the shape.
    #[error("{found} values for {expected} elements")]
    Length {
        /// Values present.
        found: usize,
        /// Elements by the shape.
        expected: usize,
    },
    /// Data in another file.
    #[error("data outside the file are not supported; save the model with its weights inside")]
    External,
}

/// An error in the graph as a whole.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GraphError {
    /// No graph in the file.
    #[error("the file holds no graph")]
    Missing,
    /// A part of ONNX that is not implemented.
    #[error("{0} are not supported")]
    Unsupported(&'static str),
    /// No input to feed.
    #[error("no input without a default value, so nothing to learn from")]
    NoInput,
    /// No output to compare with targets.
    #[error("no output")]
    NoOutput,
    /// An input or output that is not a float tensor of known rank.
    #[error("`{name}` is not a float tensor of known rank: {why}")]
    Boundary {
        /// The input or output.
        name: String,
        /// Its actual kind.
        why: String,
    },
    /// A value used before anything produces it.
    #[error(
        "node `{node}` uses `{value}`, which nothing before it produces: the graph is cyclic, unsorted or incomplete"
    )]
    Undefined {
        /// The user.
        node: String,
        /// The value.
        value: String,
    },
    /// One name for two values.
    #[error("`{0}` is defined twice")]
    Duplicate(String),
    /// Nothing to train.
    #[error("no float initializer reaches the output, so nothing can be trained")]
    NoParameters,
}

pub(crate) type Result<T> = std::result::Result<T, ModelError>;
pub(crate) type NodeResult<T> = std::result::Result<T, GraphNodeError>;

/// Shapes that do not fit, in one line.
pub(crate) fn shapes<T>(message: impl Into<String>) -> NodeResult<T> {
    Err(GraphNodeError::Shapes(message.into()))
}
