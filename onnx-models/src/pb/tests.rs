//! Comparison with tract's complete messages.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use prost::Message;

/// Every file of the tests and every shipped one, re-encoded, against tract's messages: the digests of models are
/// computed from these bytes.
#[test]
fn files_are_read_and_written_as_by_complete_messages() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for folder in ["models", "tests/exporters", "tests/golden"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "onnx") {
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            let here = super::ModelProto::decode(bytes.as_slice()).unwrap();
            let complete = tract_onnx::pb::ModelProto::decode(bytes.as_slice()).unwrap();
            assert_eq!(here.encode_to_vec(), complete.encode_to_vec(), "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 70, "{seen} files");
}

/// Fields that no file above has.
#[test]
fn rare_fields_keep_their_numbers() {
    use tract_onnx::pb;
    let text = |text: &str| text.to_owned();
    let tensor = pb::TensorProto {
        dims: vec![2],
        data_type: 7,
        float_data: vec![1.5],
        int32_data: vec![-1],
        string_data: vec![b"s".to_vec()],
        int64_data: vec![-5, 7],
        name: text("tensor"),
        doc_string: text("documented"),
        raw_data: vec![1, 2],
        double_data: vec![2.5],
        uint64_data: vec![9],
        data_location: Some(1),
        external_data: vec![pb::StringStringEntryProto { key: text("location"), value: text("x") }],
        segment: None,
    };
    let attribute = pb::AttributeProto {
        name: text("attribute"),
        ref_attr_name: text("other"),
        doc_string: text("documented"),
        r#type: 9,
        f: 0.5,
        i: -3,
        s: b"bytes".to_vec(),
        t: Some(tensor.clone()),
        floats: vec![0.25],
        ints: vec![4],
        strings: vec![b"t".to_vec()],
        tensors: vec![tensor.clone()],
        ..Default::default()
    };
    let dimension = |value| pb::tensor_shape_proto::Dimension { denotation: text("BATCH"), value };
    use pb::tensor_shape_proto::dimension::Value;
    let shape = pb::TensorShapeProto {
        dim: vec![
            dimension(Some(Value::DimValue(3))),
            dimension(Some(Value::DimParam(text("n")))),
            dimension(None),
        ],
    };
    let tensor_type = pb::type_proto::Tensor { elem_type: 1, shape: Some(shape) };
    let value = Some(pb::type_proto::Value::TensorType(tensor_type));
    let info = pb::ValueInfoProto {
        name: text("value"),
        r#type: Some(pb::TypeProto { denotation: text("TENSOR"), value }),
        doc_string: text("documented"),
    };
    let node = pb::NodeProto {
        input: vec![text("a")],
        output: vec![text("b")],
        name: text("node"),
        op_type: text("Add"),
        domain: text("ai.onnx"),
        attribute: vec![attribute],
        doc_string: text("documented"),
    };
    let graph = pb::GraphProto {
        node: vec![node],
        name: text("graph"),
        initializer: vec![tensor],
        doc_string: text("documented"),
        input: vec![info.clone()],
        output: vec![info.clone()],
        value_info: vec![info],
        ..Default::default()
    };
    let model = pb::ModelProto {
        ir_version: 8,
        opset_import: vec![pb::OperatorSetIdProto { domain: text("d"), version: 17 }],
        producer_name: text("producer"),
        producer_version: text("1"),
        domain: text("domain"),
        model_version: 2,
        doc_string: text("documented"),
        graph: Some(graph),
        metadata_props: vec![pb::StringStringEntryProto { key: text("k"), value: text("v") }],
        ..Default::default()
    };
    let bytes = model.encode_to_vec();
    assert_eq!(super::ModelProto::decode(bytes.as_slice()).unwrap().encode_to_vec(), bytes);
}
