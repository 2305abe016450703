//! Separation of fixed inputs from weights that are stored in the same tensor.
//!
//! Exporters store equal tensors once. In a new model the bias of a BatchNormalization equals its running mean (zeros)
//! and its scale equals its running variance (ones), so the file has one tensor for both: PyTorch's newer exporter uses
//! the weight at both places, the older one adds an Identity node. The statistics would then follow the weight.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::operators::is_fixed_input;
use crate::pb::{self, DataType};

/// Gives every fixed input whose tensor is used as a weight too an initializer of its own, a copy of that tensor.
///
/// There is one copy of a tensor, however many inputs need it, so the file at most doubles in size.
pub(crate) fn separate(file: &mut pb::ModelProto) {
    let Some(graph) = file.graph.as_mut() else { return };
    let shared = shared_inputs(graph);
    if shared.is_empty() {
        return;
    }
    let origins: HashSet<&str> = shared.iter().map(|shared| shared.origin.as_str()).collect();
    let mut used_names = names(graph);
    let mut copies: HashMap<String, String> = HashMap::new();
    let mut initializers = Vec::new();
    for (origin, tensor) in float_tensors(graph).filter(|(name, _)| origins.contains(name)) {
        let name = unused_name(&mut used_names, origin);
        copies.insert(origin.to_owned(), name.clone());
        initializers.push(pb::TensorProto { name, ..tensor.into_owned() });
    }
    // Before version 4 of the format every initializer is declared as an input as well.
    let declared = graph.input.iter().filter_map(|input| {
        copies.get(&input.name).map(|name| pb::ValueInfoProto { name: name.clone(), ..input.clone() })
    });
    let declared: Vec<_> = declared.collect();
    graph.input.extend(declared);
    graph.initializer.extend(initializers);
    for SharedInput { node, input, origin } in &shared {
        if let Some(copy) = copies.get(origin) {
            graph.node[*node].input[*input].clone_from(copy);
        }
    }
}

/// A fixed input of a node, with the value it takes through any number of Identity nodes.
struct SharedInput {
    node: usize,
    input: usize,
    origin: String,
}

/// The fixed inputs whose origin is also an input that can be trained.
fn shared_inputs(graph: &pb::GraphProto) -> Vec<SharedInput> {
    let mut origins: HashMap<&str, &str> = HashMap::new();
    let mut trainable: HashSet<&str> = HashSet::new();
    let mut fixed = Vec::new();
    // The nodes of a valid file are sorted, so one pass follows every chain of Identity nodes.
    for (index, node) in graph.node.iter().enumerate() {
        for (input, name) in node.input.iter().enumerate() {
            let origin = origins.get(name.as_str()).copied().unwrap_or(name);
            if is_fixed_input(&node.op_type, input) {
                fixed.push((index, input, origin));
            } else {
                trainable.insert(name);
            }
            if let ("Identity", Some(output)) = (node.op_type.as_str(), node.output.first()) {
                origins.insert(output, origin);
            }
        }
    }
    let shared = fixed.into_iter().filter(|(_, _, origin)| trainable.contains(origin));
    shared.map(|(node, input, origin)| SharedInput { node, input, origin: origin.to_owned() }).collect()
}

/// The float tensors of initializers and Constant nodes, by name.
fn float_tensors(graph: &pb::GraphProto) -> impl Iterator<Item = (&str, Cow<'_, pb::TensorProto>)> {
    let initializers = graph.initializer.iter().map(|tensor| (tensor.name.as_str(), Cow::Borrowed(tensor)));
    let constants = graph.node.iter().filter(|node| node.op_type == "Constant").filter_map(|node| {
        let tensor =
            node.attribute.iter().find_map(|attribute| match (&attribute.t, attribute.name.as_str()) {
                (Some(tensor), _) => Some(Cow::Borrowed(tensor)),
                (None, "value_floats") => Some(Cow::Owned(pb::TensorProto {
                    dims: vec![attribute.floats.len() as i64],
                    data_type: DataType::Float as i32,
                    float_data: attribute.floats.clone(),
                    ..Default::default()
                })),
                _ => None,
            })?;
        Some((node.output.first()?.as_str(), tensor))
    });
    initializers.chain(constants).filter(|(_, tensor)| tensor.data_type == DataType::Float as i32)
}

fn names(graph: &pb::GraphProto) -> HashSet<String> {
    let initializers = graph.initializer.iter().map(|tensor| &tensor.name);
    let inputs = graph.input.iter().map(|input| &input.name);
    let outputs = graph.node.iter().flat_map(|node| &node.output);
    initializers.chain(inputs).chain(outputs).cloned().collect()
}

fn unused_name(used: &mut HashSet<String>, origin: &str) -> String {
    let mut name = format!("{origin}.fixed");
    let mut count = 1;
    while !used.insert(name.clone()) {
        count += 1;
        name = format!("{origin}.fixed{count}");
    }
    name
}
