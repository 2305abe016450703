//! Builder of small ONNX files, batches and a seeded generator for tests.
#![allow(dead_code, unused_imports, unused_macros, unreachable_pub, clippy::unwrap_used)]

use evenhand_models::{
    Batch, Engine, InferenceEngine, LoadOptions, Loss, Model, Predictor, Targets, Trainer, shipped,
};
use prost::Message;
use tract_onnx::pb;
use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::tensor_shape_proto::dimension::Value as DimensionValue;

/// Runs each of these functions, generic over the backend, as a test on every backend this build has.
macro_rules! on_every_backend {
    ($($test:ident),+ $(,)?) => {
        #[cfg(feature = "flex")]
        mod flex {
            $(#[test] fn $test() { super::$test::<evenhand_models::backend::Flex>() })+
        }
        #[cfg(feature = "ndarray")]
        mod ndarray {
            $(#[test] fn $test() { super::$test::<evenhand_models::backend::NdArray>() })+
        }
    };
}
pub(crate) use on_every_backend;

/// Calls a function, generic over the inference engine and a backend, with every engine this build predicts with.
macro_rules! with_every_inference_engine {
    ($function:ident; $($argument:expr),* $(,)?) => {{
        #[cfg(feature = "tract")]
        $function::<evenhand_models::backend::Tract>($($argument),*);
        #[cfg(feature = "flex")]
        $function::<evenhand_models::backend::Flex>($($argument),*);
        #[cfg(feature = "ndarray")]
        $function::<evenhand_models::backend::NdArray>($($argument),*);
    }};
    ($function:ident, $backend:ty $(, $argument:expr)* $(,)?) => {{
        #[cfg(feature = "tract")]
        $function::<evenhand_models::backend::Tract, $backend>($($argument),*);
        #[cfg(feature = "flex")]
        $function::<evenhand_models::backend::Flex, $backend>($($argument),*);
        #[cfg(feature = "ndarray")]
        $function::<evenhand_models::backend::NdArray, $backend>($($argument),*);
    }};
}
pub(crate) use with_every_inference_engine;

pub fn trainer<B: Engine>(model: &Model) -> Trainer<B> {
    Trainer::on(model, 0)
}

pub fn shipped_model(name: &str) -> Model {
    Model::load(shipped::by_name(name).unwrap(), &LoadOptions::default()).unwrap()
}

pub fn load(b: &OnnxBuilder) -> Model {
    Model::load(&b.bytes(), &LoadOptions::default()).unwrap()
}

/// A batch that suits a shipped model: classes for one that ends in log-probabilities, values for the others.
pub fn batch(model: &Model, samples: usize, steps: usize, seed: &mut u64) -> (Batch, Loss) {
    let free = |index: usize| if index == 0 { samples } else { steps };
    let shape: Vec<usize> =
        model.input_shape().iter().enumerate().map(|(index, size)| size.unwrap_or(free(index))).collect();
    let inputs = (0..shape.iter().product()).map(|_| uniform(seed)).collect();
    let width = model.output_shape().last().copied().flatten().unwrap_or(1);
    let (targets, loss) = match model.metadata()["evenhand.loss"].parse().unwrap() {
        loss @ (Loss::Nll | Loss::CrossEntropy) => {
            (Targets::Classes((0..samples).map(|_| next(seed) as u32 % width as u32).collect()), loss)
        }
        loss => (Targets::Values((0..samples * width).map(|_| uniform(seed)).collect()), loss),
    };
    (Batch { inputs, shape, targets }, loss)
}

/// A predictor of an engine.
pub fn predictor<E: InferenceEngine>(model: &Model, weights: &[f32]) -> Predictor<E> {
    Predictor::on(model, weights).unwrap()
}

/// The largest difference, relative to the largest value.
pub fn off(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let scale = expected.iter().fold(1e-12f32, |max, v| max.max(v.abs()));
    found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max) / scale
}

/// A dimension: fixed if positive, free with this name otherwise.
#[derive(Clone, Copy)]
pub enum DeclaredDim {
    Fixed(i64),
    Free(&'static str),
}

/// An attribute's value.
#[derive(Clone)]
#[allow(clippy::large_enum_variant)]
pub enum Attr {
    Int(i64),
    Float(f32),
    Ints(Vec<i64>),
    Floats(Vec<f32>),
    Text(&'static str),
    Texts(Vec<&'static str>),
    Tensor(pb::TensorProto),
}

pub struct OnnxBuilder {
    pub file: pb::ModelProto,
}

impl OnnxBuilder {
    pub fn new(opset: i64) -> Self {
        let opset_import = vec![pb::OperatorSetIdProto { domain: String::new(), version: opset }];
        let graph = Some(pb::GraphProto { name: "test".to_owned(), ..Default::default() });
        OnnxBuilder { file: pb::ModelProto { ir_version: 8, opset_import, graph, ..Default::default() } }
    }

    pub fn graph(&mut self) -> &mut pb::GraphProto {
        self.file.graph.as_mut().unwrap()
    }

    pub fn input(&mut self, name: &str, dims: &[DeclaredDim]) -> &mut Self {
        let info = info(name, DataType::Float, dims);
        self.graph().input.push(info);
        self
    }

    pub fn output(&mut self, name: &str) -> &mut Self {
        self.graph().output.push(pb::ValueInfoProto { name: name.to_owned(), ..Default::default() });
        self
    }

    pub fn floats(&mut self, name: &str, shape: &[usize], data: &[f32]) -> &mut Self {
        self.graph().initializer.push(floats(name, shape, data));
        self
    }

    pub fn ints(&mut self, name: &str, shape: &[usize], data: &[i64]) -> &mut Self {
        self.graph().initializer.push(ints(name, shape, data));
        self
    }

    pub fn node(
        &mut self,
        operator: &str,
        inputs: &[&str],
        outputs: &[&str],
        attributes: &[(&str, Attr)],
    ) -> &mut Self {
        let node = pb::NodeProto {
            input: inputs.iter().map(|&s| s.to_owned()).collect(),
            output: outputs.iter().map(|&s| s.to_owned()).collect(),
            name: format!("{operator} {}", outputs.iter().find(|o| !o.is_empty()).unwrap_or(&"")),
            op_type: operator.to_owned(),
            attribute: attributes.iter().map(|(name, value)| attribute(name, value)).collect(),
            ..Default::default()
        };
        self.graph().node.push(node);
        self
    }

    pub fn metadata(&mut self, key: &str, value: &str) -> &mut Self {
        self.file
            .metadata_props
            .push(pb::StringStringEntryProto { key: key.to_owned(), value: value.to_owned() });
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.file.encode_to_vec()
    }
}

pub fn info(name: &str, kind: DataType, dims: &[DeclaredDim]) -> pb::ValueInfoProto {
    let dim = |dim: &DeclaredDim| pb::tensor_shape_proto::Dimension {
        value: Some(match dim {
            DeclaredDim::Fixed(size) => DimensionValue::DimValue(*size),
            DeclaredDim::Free(name) => DimensionValue::DimParam((*name).to_owned()),
        }),
        ..Default::default()
    };
    let shape = Some(pb::TensorShapeProto { dim: dims.iter().map(dim).collect() });
    let tensor = pb::type_proto::Tensor { elem_type: kind as i32, shape };
    let value = Some(pb::type_proto::Value::TensorType(tensor));
    pb::ValueInfoProto {
        name: name.to_owned(),
        r#type: Some(pb::TypeProto { value, ..Default::default() }),
        ..Default::default()
    }
}

pub fn floats(name: &str, shape: &[usize], data: &[f32]) -> pb::TensorProto {
    pb::TensorProto {
        name: name.to_owned(),
        dims: shape.iter().map(|&d| d as i64).collect(),
        data_type: DataType::Float as i32,
        raw_data: data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        ..Default::default()
    }
}

pub fn ints(name: &str, shape: &[usize], data: &[i64]) -> pb::TensorProto {
    pb::TensorProto {
        name: name.to_owned(),
        dims: shape.iter().map(|&d| d as i64).collect(),
        data_type: DataType::Int64 as i32,
        int64_data: data.to_vec(),
        ..Default::default()
    }
}

fn attribute(name: &str, value: &Attr) -> pb::AttributeProto {
    let mut proto = pb::AttributeProto { name: name.to_owned(), ..Default::default() };
    let kind = match value {
        Attr::Int(v) => {
            proto.i = *v;
            AttributeType::Int
        }
        Attr::Float(v) => {
            proto.f = *v;
            AttributeType::Float
        }
        Attr::Ints(v) => {
            proto.ints = v.clone();
            AttributeType::Ints
        }
        Attr::Floats(v) => {
            proto.floats = v.clone();
            AttributeType::Floats
        }
        Attr::Text(v) => {
            proto.s = v.as_bytes().to_vec();
            AttributeType::String
        }
        Attr::Texts(v) => {
            proto.strings = v.iter().map(|s| s.as_bytes().to_vec()).collect();
            AttributeType::Strings
        }
        Attr::Tensor(v) => {
            proto.t = Some(v.clone());
            AttributeType::Tensor
        }
    };
    proto.r#type = kind as i32;
    proto
}

/// The next number of a small seeded generator, uniform on −1 to 1.
pub fn uniform(state: &mut u64) -> f32 {
    (next(state) >> 40) as f32 / (1u64 << 23) as f32 - 1.0
}

/// SplitMix64.
pub fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
