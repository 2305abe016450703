//! The file with other weights in place, or with its weights as inputs.

use std::collections::HashMap;

use prost::Message;
use tract_onnx::pb;

use crate::order::Parameter;

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
            attribute.r#type = pb::attribute_proto::AttributeType::Tensor as i32;
            attribute.t = Some(pb::TensorProto {
                dims: vec![floats.len() as i64],
                data_type: pb::tensor_proto::DataType::Float as i32,
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

/// The file with its parameters as further inputs, in canonical order after its own.
///
/// They get names of their own: tract calls what it makes of a node after it, such as the bias of `conv1` `conv1.bias`.
pub(crate) fn without<'a>(
    stripped: &pb::ModelProto,
    parameters: impl Iterator<Item = &'a Parameter>,
) -> pb::ModelProto {
    let mut file = stripped.clone();
    let parameters: Vec<&Parameter> = parameters.collect();
    let new_name = |index: usize| format!("evenhand parameter {index}");
    let places: HashMap<&str, usize> =
        parameters.iter().enumerate().map(|(index, p)| (p.name.as_str(), index)).collect();
    let graph = file.graph.get_or_insert_default();
    graph.initializer.retain(|tensor| !places.contains_key(tensor.name.as_str()));
    graph.input.retain(|input| !places.contains_key(input.name.as_str()));
    graph.node.retain(|node| node.op_type != "Constant" || !places.contains_key(node.output[0].as_str()));
    for input in graph.node.iter_mut().flat_map(|node| &mut node.input) {
        if let Some(&index) = places.get(input.as_str()) {
            *input = new_name(index);
        }
    }
    graph.input.extend(parameters.iter().enumerate().map(|(index, p)| input(new_name(index), &p.shape)));
    file
}

fn input(name: String, shape: &[usize]) -> pb::ValueInfoProto {
    use pb::tensor_shape_proto::Dimension;
    use pb::tensor_shape_proto::dimension::Value;
    let dimension =
        |&size: &usize| Dimension { value: Some(Value::DimValue(size as i64)), ..Default::default() };
    let tensor = pb::type_proto::Tensor {
        elem_type: pb::tensor_proto::DataType::Float as i32,
        shape: Some(pb::TensorShapeProto { dim: shape.iter().map(dimension).collect() }),
    };
    let value = Some(pb::type_proto::Value::TensorType(tensor));
    pb::ValueInfoProto {
        name,
        r#type: Some(pb::TypeProto { value, ..Default::default() }),
        ..Default::default()
    }
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
