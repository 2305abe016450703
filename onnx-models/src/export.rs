//! The file with other weights in place.

use std::collections::HashMap;

use prost::Message;

use crate::order::Parameter;
use crate::pb;

/// The tensors of a file that hold parameters (initializers, and values of Constant nodes), each with its value.
fn tensors<'f, 'p, V: Copy>(
    file: &'f mut pb::ModelProto,
    values: impl Iterator<Item = (&'p Parameter, V)>,
) -> impl Iterator<Item = (V, &'f mut pb::TensorProto)> {
    let by_name: HashMap<&str, V> =
        values.map(|(parameter, value)| (parameter.name.as_str(), value)).collect();
    let graph = file.graph.get_or_insert_default();
    let initializers = graph.initializer.iter_mut().map(|tensor| (tensor.name.clone(), tensor));
    let constants = graph.node.iter_mut().filter(|node| node.op_type == "Constant").flat_map(|node| {
        let name = node.output[0].clone();
        node.attribute
            .iter_mut()
            .filter_map(|attribute| attribute.t.as_mut())
            .map(move |tensor| (name.clone(), tensor))
    });
    initializers
        .chain(constants)
        .filter_map(move |(name, tensor)| Some((*by_name.get(name.as_str())?, tensor)))
}

/// Turns Constant nodes that list their floats into ones that hold a tensor, and removes the parameters' data.
pub(crate) fn strip<'p>(file: &mut pb::ModelProto, parameters: impl Iterator<Item = &'p Parameter>) {
    for node in
        file.graph.iter_mut().flat_map(|graph| &mut graph.node).filter(|node| node.op_type == "Constant")
    {
        for attribute in node.attribute.iter_mut().filter(|attribute| attribute.name == "value_floats") {
            let floats = std::mem::take(&mut attribute.floats);
            attribute.name = "value".to_owned();
            attribute.r#type = pb::AttributeType::Tensor as i32;
            attribute.t = Some(pb::TensorProto {
                dims: vec![floats.len() as i64],
                data_type: pb::DataType::Float as i32,
                float_data: floats,
                ..Default::default()
            });
        }
    }
    for ((), tensor) in tensors(file, parameters.map(|parameter| (parameter, ()))) {
        tensor.raw_data = Vec::new();
        tensor.float_data = Vec::new();
    }
}

/// The file with these weights in place.
pub(crate) fn fill<'a>(
    stripped: &pb::ModelProto,
    weights: impl Iterator<Item = (&'a Parameter, &'a [f32])>,
) -> pb::ModelProto {
    let mut file = stripped.clone();
    for (values, tensor) in tensors(&mut file, weights) {
        tensor.raw_data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    }
    file
}

/// The bytes of the file with these weights and these additions to its metadata.
pub(crate) fn write<'a>(
    stripped: &pb::ModelProto,
    weights: impl Iterator<Item = (&'a Parameter, &'a [f32])>,
    metadata: &[(&str, &str)],
) -> Vec<u8> {
    let mut file = fill(stripped, weights);
    for &(key, value) in metadata {
        file.metadata_props.retain(|entry| entry.key != key);
        file.metadata_props.push(pb::StringStringEntryProto { key: key.to_owned(), value: value.to_owned() });
    }
    file.encode_to_vec()
}
