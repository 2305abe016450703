//! Selection and canonical order of the trainable parameters, and the digest of a model.

use prost::Message;
use sha2::{Digest, Sha256};

use crate::error::{GraphError, ModelError, Result};
use crate::graph::{ModelGraph, TrainableValue, ValueId, ValueSource};
use crate::operators::{Operator, is_fixed_input, is_running_statistic};
use crate::pb;
use crate::proto::{FileTensor, TensorValues};

/// One trainable tensor and its place in the flat vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The initializer's name in the file.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Position of its first element in the flat vector, in row-major order.
    pub offset: usize,
}

impl Parameter {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// True if it has no elements; never the case in a loaded model.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Moves the trainable tensors out of the graph's constants and returns them with their values.
///
/// Trainable is every float tensor of the file (initializer, Constant node or input with a default) that reaches the
/// first output through an input that can be trained. Not trained unless listed are scalars of rank 0, the literals of
/// the program that was exported, and initial states of zeros, where sequences begin. Never trained are the fixed inputs
/// of operators (running statistics, bounds, ratios and exponents) and the tensors that running statistics are computed from.
///
/// The canonical order is that of first use, node by node and input by input: it depends on the graph alone, not on how
/// an exporter sorted its initializers.
///
/// The parameters named `personal` form a second vector. In the graph they come after the others.
pub(crate) fn choose(
    graph: &mut ModelGraph,
    listed: Option<&[String]>,
    personal: &[String],
) -> Result<ChosenParameters> {
    let needed = graph.needed(&graph.outputs[..1]);
    let mut uses: Vec<TensorUse> = sources_of_statistics(graph, &needed)
        .into_iter()
        .map(|is_source| TensorUse { weight: false, fixed: is_source })
        .collect();
    let mut order: Vec<ValueId> = Vec::new();
    for (node, _) in graph.nodes.iter().zip(&needed).filter(|(_, needed)| **needed) {
        for (index, value) in node.inputs.iter().enumerate() {
            let Some(value) = *value else { continue };
            if float(graph, value).is_none() {
                continue;
            }
            if is_fixed_input(&node.operator, index) {
                uses[value].fixed = true;
            } else if !std::mem::replace(&mut uses[value].weight, true) {
                order.push(value);
            }
        }
    }
    let mut chosen: Vec<ValueId> = match listed {
        None => {
            let states = initial_states(graph);
            let weight = |&value: &ValueId| {
                let tensor = float(graph, value).filter(|tensor| !tensor.shape.is_empty());
                !uses[value].fixed && tensor.is_some_and(|tensor| !(states[value] && zero(tensor)))
            };
            order.iter().copied().filter(weight).collect()
        }
        Some(listed) => by_name(graph, &order, &uses, listed)?,
    };
    let kept = by_name(graph, &order, &uses, personal).map_err(|error| match error {
        ModelError::Trainable { name, why, available } => ModelError::Personal { name, why, available },
        other => other,
    })?;
    chosen.retain(|value| !kept.contains(value));
    if let (true, Some(name)) = (chosen.is_empty(), personal.first()) {
        let why = "no other parameter is left to share";
        return Err(ModelError::Personal { name: name.clone(), why, available: names(graph, &order) });
    }
    let shared = take(graph, chosen)?;
    if shared.parameters.is_empty() {
        return Err(ModelError::Graph(GraphError::NoParameters));
    }
    Ok(ChosenParameters { shared, personal: take(graph, kept)? })
}

/// The trainable tensors of a model.
pub(crate) struct ChosenParameters {
    pub(crate) shared: ParameterVector,
    pub(crate) personal: ParameterVector,
}

/// Tensors in canonical order, and their values in one flat vector.
#[derive(Debug)]
pub(crate) struct ParameterVector {
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) initial: Vec<f32>,
}

impl ParameterVector {
    /// Each tensor with its part of a flat vector of this length.
    pub(crate) fn split<'a>(&'a self, values: &'a [f32]) -> impl Iterator<Item = (&'a Parameter, &'a [f32])> {
        self.parameters
            .iter()
            .map(|parameter| (parameter, &values[parameter.offset..parameter.offset + parameter.len()]))
    }
}

/// Moves these tensors out of the graph's constants.
fn take(graph: &mut ModelGraph, chosen: Vec<ValueId>) -> Result<ParameterVector> {
    let mut parameters = Vec::new();
    let mut weights = Vec::new();
    for value in chosen {
        let ValueSource::Constant(FileTensor { shape, data: TensorValues::Float(data) }) =
            std::mem::replace(&mut graph.sources[value], ValueSource::Parameter)
        else {
            continue;
        };
        if data.is_empty() {
            return Err(ModelError::Graph(GraphError::NoParameters));
        }
        parameters.push(Parameter {
            name: graph.values[value].clone(),
            shape: shape.clone(),
            offset: weights.len(),
        });
        graph.parameters.push(TrainableValue { value, shape });
        weights.extend(data);
    }
    Ok(ParameterVector { parameters, initial: weights })
}

/// The uses of a tensor.
#[derive(Clone)]
struct TensorUse {
    weight: bool,
    fixed: bool,
}

/// For each value, whether a running statistic is computed from it and from nothing that depends on the model's inputs.
fn sources_of_statistics(graph: &ModelGraph, needed: &[bool]) -> Vec<bool> {
    let mut from_inputs = vec![false; graph.values.len()];
    graph.inputs.iter().for_each(|input| from_inputs[input.value] = true);
    for node in &graph.nodes {
        if node.inputs.iter().flatten().any(|&value| from_inputs[value]) {
            node.outputs.iter().flatten().for_each(|&value| from_inputs[value] = true);
        }
    }
    let mut sources = vec![false; graph.values.len()];
    for (node, _) in graph.nodes.iter().zip(needed).filter(|(_, needed)| **needed).rev() {
        let computes_source = node.outputs.iter().flatten().any(|&value| sources[value]);
        for (index, value) in node.inputs.iter().enumerate() {
            let Some(value) = *value else { continue };
            let is_source = computes_source || is_running_statistic(&node.operator, index);
            sources[value] |= is_source && !from_inputs[value];
        }
    }
    sources
}

/// For each value, whether it is used as the initial state of a recurrent layer only, perhaps after layout operators.
fn initial_states(graph: &ModelGraph) -> Vec<bool> {
    let (mut used, mut only) = (vec![false; graph.values.len()], vec![true; graph.values.len()]);
    for node in graph.nodes.iter().rev() {
        let passed_on = node.outputs.iter().flatten().all(|&output| used[output] && only[output]);
        for (index, value) in node.inputs.iter().enumerate() {
            let Some(value) = *value else { continue };
            used[value] = true;
            only[value] &= match node.op {
                Operator::Recurrent(_) => index >= 5,
                Operator::Layout(_) => index == 0 && passed_on,
                _ => false,
            };
        }
    }
    used.iter().zip(only).map(|(used, only)| *used && only).collect()
}

fn zero(tensor: &FileTensor) -> bool {
    matches!(&tensor.data, TensorValues::Float(data) if data.iter().all(|&value| value == 0.0))
}

fn float(graph: &ModelGraph, value: ValueId) -> Option<&FileTensor> {
    match &graph.sources[value] {
        ValueSource::Constant(tensor @ FileTensor { data: TensorValues::Float(_), .. }) => Some(tensor),
        _ => None,
    }
}

fn names(graph: &ModelGraph, values: &[ValueId]) -> String {
    values.iter().map(|&value| graph.values[value].as_str()).collect::<Vec<_>>().join(", ")
}

fn by_name(
    graph: &ModelGraph,
    order: &[ValueId],
    uses: &[TensorUse],
    listed: &[String],
) -> Result<Vec<ValueId>> {
    let available = || names(graph, order);
    for name in listed {
        let refuse = |why| Err(ModelError::Trainable { name: name.clone(), why, available: available() });
        let Some(value) = graph.values.iter().position(|v| v == name) else {
            return refuse("the file does not have it");
        };
        if float(graph, value).is_none() {
            return refuse("it is not a float initializer");
        }
        if uses[value].fixed {
            return refuse("it is a running statistic, a bound, a ratio or an exponent");
        }
        if !uses[value].weight {
            return refuse("it does not reach the first output");
        }
    }
    Ok(order.iter().copied().filter(|&v| listed.contains(&graph.values[v])).collect())
}

/// The digest of everything two sides must agree on before they exchange weights: the operators with their attributes,
/// how they are connected, fixed tensors, and the names, shapes and order of the parameters.
///
/// `stripped` is the file without weights. Metadata, documentation and the names of nodes do not count either, so
/// exporting trained weights keeps the digest.
///
/// Which parameters are personal counts, since the others alone are exchanged.
pub(crate) fn digest(stripped: &pb::ModelProto, shared: &[Parameter], personal: &[Parameter]) -> [u8; 32] {
    let mut graph = stripped.graph.clone().unwrap_or_default();
    graph.name.clear();
    graph.doc_string.clear();
    graph.value_info.clear();
    for tensor in &mut graph.initializer {
        tensor.doc_string.clear();
    }
    for node in &mut graph.node {
        node.name.clear();
        node.doc_string.clear();
        node.attribute.sort_by(|a, b| a.name.cmp(&b.name));
        node.attribute.iter_mut().for_each(|attribute| attribute.doc_string.clear());
    }
    for info in graph.input.iter_mut().chain(&mut graph.output) {
        info.doc_string.clear();
    }
    let mut canonical = pb::ModelProto { graph: Some(graph), ..Default::default() };
    canonical.opset_import = stripped.opset_import.clone();
    let mut hash = Sha256::new();
    hash.update(b"evenhand graph 1");
    hash.update(canonical.encode_to_vec());
    for Parameter { name, shape, offset } in shared {
        hash.update(format!("{name:?} {shape:?} {offset};"));
    }
    for Parameter { name, shape, offset } in personal {
        hash.update(format!("personal {name:?} {shape:?} {offset};"));
    }
    hash.finalize().into()
}
