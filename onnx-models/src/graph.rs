//! The validated graph of a file: every name resolved, every operator with its attributes read, every tensor bounded.

use std::collections::HashMap;

use crate::error::{GraphError, GraphNodeError, ModelError, Result};
use crate::limits::ModelLimits;
use crate::node_reader::NodeReader;
use crate::operators::{self, ElementKind, Operator};
use crate::pb::{self, DataType, DimensionValue};
use crate::proto::{self, FileTensor, TensorValues};

pub(crate) type ValueId = usize;

/// The graph, with values numbered in the order they are defined.
#[derive(Debug)]
pub(crate) struct ModelGraph {
    /// The values' names.
    pub(crate) values: Vec<String>,
    /// The source of each value.
    pub(crate) sources: Vec<ValueSource>,
    pub(crate) inputs: Vec<GraphInput>,
    pub(crate) outputs: Vec<ValueId>,
    pub(crate) nodes: Vec<GraphNode>,
    /// The trainable values in canonical order: see [`order`](crate::order).
    pub(crate) parameters: Vec<TrainableValue>,
}

#[derive(Debug, Clone)]
pub(crate) enum ValueSource {
    Input,
    Constant(FileTensor),
    /// Trained; the model holds the data.
    Parameter,
    /// Computed by a node, and which output of it.
    Node,
    /// An output of a node that is not implemented; nothing may use it.
    Unavailable,
}

/// An input to feed, with the dimensions it declares.
#[derive(Debug, Clone)]
pub(crate) struct GraphInput {
    pub(crate) value: ValueId,
    pub(crate) dims: Vec<InputDim>,
}

/// A dimension: fixed, or free with a name that may tie it to others.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum InputDim {
    Fixed(usize),
    Free(String),
}

#[derive(Debug)]
pub(crate) struct GraphNode {
    /// The node's name, or its first output's.
    pub(crate) name: String,
    pub(crate) operator: String,
    pub(crate) op: Operator,
    pub(crate) inputs: Vec<Option<ValueId>>,
    pub(crate) outputs: Vec<Option<ValueId>>,
}

#[derive(Debug, Clone)]
pub(crate) struct TrainableValue {
    pub(crate) value: ValueId,
    pub(crate) shape: Vec<usize>,
}

impl ModelGraph {
    /// Reads and validates a decoded model. Parameters are chosen afterwards.
    pub(crate) fn build(model: &pb::ModelProto, limits: &ModelLimits) -> Result<ModelGraph> {
        let opset = model.opset_import.iter().find(|o| default_domain(&o.domain)).map_or(0, |o| o.version);
        if !(11..=21).contains(&opset) {
            return Err(ModelError::Opset { found: opset });
        }
        let proto = model.graph.as_ref().ok_or(ModelError::Graph(GraphError::Missing))?;
        ModelLimits::check("the graph's nodes", proto.node.len(), limits.nodes_max, "nodes_max")?;

        let mut builder = GraphBuilder::default();
        for tensor in &proto.initializer {
            let data = proto::tensor(tensor, limits)?;
            builder.define(&tensor.name, ValueSource::Constant(data))?;
        }
        for input in &proto.input {
            if !builder.names.contains_key(&input.name) {
                let value = builder.define(&input.name, ValueSource::Input)?;
                builder.inputs.push(GraphInput { value, dims: boundary(input, limits)? });
            }
        }
        for node in &proto.node {
            builder.node(node, opset, limits)?;
        }
        let output = |output: &pb::ValueInfoProto| match builder.names.get(&output.name) {
            Some(&value) => Ok(value),
            None => Err(ModelError::Graph(GraphError::Undefined {
                node: "output".to_owned(),
                value: output.name.clone(),
            })),
        };
        let outputs = proto.output.iter().map(output).collect::<Result<Vec<_>>>()?;
        let &first = outputs.first().ok_or(ModelError::Graph(GraphError::NoOutput))?;
        if builder.inputs.is_empty() {
            return Err(ModelError::Graph(GraphError::NoInput));
        }
        if builder.kinds[first] != Some(ElementKind::Float) {
            return Err(ModelError::Graph(GraphError::Boundary {
                name: builder.values[first].clone(),
                why: "integers".to_owned(),
            }));
        }
        Ok(ModelGraph {
            values: builder.values,
            sources: builder.sources,
            inputs: builder.inputs,
            outputs,
            nodes: builder.nodes,
            parameters: vec![],
        })
    }

    /// For each node, whether these values depend on it.
    pub(crate) fn needed(&self, outputs: &[ValueId]) -> Vec<bool> {
        let mut values = vec![false; self.values.len()];
        outputs.iter().for_each(|&value| values[value] = true);
        let mut nodes = vec![false; self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate().rev() {
            nodes[index] = node.outputs.iter().flatten().any(|&value| values[value]);
            if nodes[index] {
                node.inputs.iter().flatten().for_each(|&value| values[value] = true);
            }
        }
        nodes
    }
}

fn default_domain(domain: &str) -> bool {
    domain.is_empty() || domain == "ai.onnx"
}

/// The declared dimensions of an input: floats of known rank.
fn boundary(info: &pb::ValueInfoProto, limits: &ModelLimits) -> Result<Vec<InputDim>> {
    let fail = |why: String| ModelError::Graph(GraphError::Boundary { name: info.name.clone(), why });
    let tensor = info.tensor_type().ok_or_else(|| fail("it has no tensor type".to_owned()))?;
    if tensor.elem_type != DataType::Float as i32 {
        return Err(fail(format!("element type {}", DataType::onnx_name(tensor.elem_type))));
    }
    let shape = tensor.shape.as_ref().ok_or_else(|| fail("it has no shape".to_owned()))?;
    ModelLimits::check(&format!("`{}`", info.name), shape.dim.len(), limits.rank_max, "rank_max")?;
    let dim = |dim: &pb::DimensionProto| match &dim.value {
        Some(DimensionValue::Size(size)) => match usize::try_from(*size) {
            Ok(size) if (1..=limits.tensor_elements_max).contains(&size) => Ok(InputDim::Fixed(size)),
            _ => Err(fail(format!("a dimension of {size}"))),
        },
        Some(DimensionValue::Name(name)) => Ok(InputDim::Free(name.clone())),
        None => Ok(InputDim::Free(String::new())),
    };
    shape.dim.iter().map(dim).collect()
}

#[derive(Default)]
struct GraphBuilder {
    names: HashMap<String, ValueId>,
    values: Vec<String>,
    sources: Vec<ValueSource>,
    kinds: Vec<Option<ElementKind>>,
    inputs: Vec<GraphInput>,
    nodes: Vec<GraphNode>,
}

impl GraphBuilder {
    fn define(&mut self, name: &str, source: ValueSource) -> Result<ValueId> {
        let value = self.values.len();
        if name.is_empty() || self.names.insert(name.to_owned(), value).is_some() {
            return Err(ModelError::Graph(GraphError::Duplicate(name.to_owned())));
        }
        self.values.push(name.to_owned());
        self.kinds.push(match &source {
            ValueSource::Constant(FileTensor { data: TensorValues::Int(_), .. }) => Some(ElementKind::Int),
            ValueSource::Unavailable => None,
            _ => Some(ElementKind::Float),
        });
        self.sources.push(source);
        Ok(value)
    }

    fn node(&mut self, proto: &pb::NodeProto, opset: i64, limits: &ModelLimits) -> Result<()> {
        let first_output = proto.output.iter().find(|name| !name.is_empty());
        let name = match (proto.name.as_str(), first_output) {
            ("", Some(output)) => output.clone(),
            (name, _) => name.to_owned(),
        };
        let unsupported = || ModelError::Operator {
            node: name.clone(),
            operator: match proto.domain.as_str() {
                "" => proto.op_type.clone(),
                domain => format!("{domain}.{}", proto.op_type),
            },
        };
        if !default_domain(&proto.domain) {
            return Err(unsupported());
        }
        let fail = |cause| ModelError::Node { node: name.clone(), operator: proto.op_type.clone(), cause };
        let reader = NodeReader::new(proto, opset, limits);
        if proto.op_type == "Constant" {
            let tensor = constant(&reader).map_err(fail)?;
            return self.define(&proto.output[0], ValueSource::Constant(tensor)).map(|_| ());
        }
        let op = operators::parse(&reader).ok_or_else(unsupported)?.map_err(fail)?;

        let input = |name: &String| match (name.as_str(), self.names.get(name)) {
            ("", _) => Ok(None),
            (_, Some(&value)) => Ok(Some(value)),
            (_, None) => Err(name.clone()),
        };
        let inputs = proto
            .input
            .iter()
            .map(input)
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|value| ModelError::Graph(GraphError::Undefined { node: name.clone(), value }))?;
        if let Some(index) = inputs.iter().position(|v| v.is_some_and(|v| self.kinds[v].is_none())) {
            let why = "is an output that is not supported; only the first one is".to_owned();
            return Err(fail(GraphNodeError::Input { index, why }));
        }
        let kinds: Vec<Option<ElementKind>> = inputs.iter().map(|v| v.and_then(|v| self.kinds[v])).collect();
        let kind = op.kind(&kinds).map_err(fail)?;
        let available = op.outputs().unwrap_or(proto.output.len());
        let mut outputs = Vec::new();
        for (index, output) in proto.output.iter().enumerate() {
            if output.is_empty() {
                outputs.push(None);
                continue;
            }
            let source = if index < available { ValueSource::Node } else { ValueSource::Unavailable };
            let value = self.define(output, source)?;
            self.kinds[value] = self.kinds[value].map(|_| kind);
            outputs.push(Some(value));
        }
        self.nodes.push(GraphNode { name, operator: proto.op_type.clone(), op, inputs, outputs });
        Ok(())
    }
}

/// The value of a Constant node, in whichever attribute it is.
fn constant(reader: &NodeReader<'_>) -> std::result::Result<FileTensor, GraphNodeError> {
    reader.arity(0..=0, 1..=1)?;
    let scalar = |data| FileTensor { shape: vec![], data };
    let list = |length, data| FileTensor { shape: vec![length], data };
    let tensor = if let Some(tensor) = reader.tensor("value")? {
        Some(tensor)
    } else if let Some(values) = reader.ints("value_ints")? {
        Some(list(values.len(), TensorValues::Int(values.to_vec())))
    } else if let Some(values) = reader.floats("value_floats")? {
        Some(list(values.len(), TensorValues::Float(values.to_vec())))
    } else if let Some(value) = reader.int("value_int")? {
        Some(scalar(TensorValues::Int(vec![value])))
    } else {
        reader.float_or_none("value_float")?.map(|value| scalar(TensorValues::Float(vec![value])))
    };
    reader.finish()?;
    tensor.ok_or_else(|| GraphNodeError::AttributeValue { name: "value", why: "is missing".to_owned() })
}
