//! Malformed and malicious files: an error or a working model, never a panic, never more memory than allowed.
#![allow(clippy::unwrap_used)]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[cfg(feature = "tract")]
use evenhand_models::backend::Tract;
use evenhand_models::{
    Batch, DefaultBackend, Engine, InferenceEngine, LoadOptions, Loss, Model, ModelError, ModelLimits,
    Predictor, Targets, shipped,
};
use prost::Message;
use support::{Attr, DeclaredDim, OnnxBuilder, next, trainer};
use tract_onnx::pb;

/// Counts the bytes this thread has allocated, and their maximum.
struct ThreadPeakAllocator;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

#[allow(unsafe_code)]
// SAFETY: every call is handed to the system's allocator unchanged; only counters of this thread are updated.
unsafe impl GlobalAlloc for ThreadPeakAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        NOW.set(NOW.get() + layout.size() as isize);
        PEAK.set(PEAK.get().max(NOW.get()));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.set(NOW.get() - layout.size() as isize);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: ThreadPeakAllocator = ThreadPeakAllocator;

/// Far below what the machine has, far above what the shipped models need.
fn options() -> LoadOptions {
    let limits = ModelLimits {
        file_bytes_max: 1 << 20,
        decoded_bytes_max: 16 << 20,
        nodes_max: 1_000,
        tensor_elements_max: 4 << 20,
        activation_bytes_max: 16 << 20,
        rank_max: 8,
    };
    LoadOptions { limits, trainable: None }
}

/// The most that may be allocated at once, whatever the file: decoding, the values of a run, their gradients, and
/// tract's copies.
const MEMORY_MAX: isize = 256 << 20;

/// Loads, trains and runs a file; every result but a panic is accepted.
fn exercise(bytes: &[u8]) -> Result<(), ModelError> {
    exercise_on::<DefaultBackend>(bytes)
}

fn exercise_on<B: Engine>(bytes: &[u8]) -> Result<(), ModelError> {
    let model = Model::load(bytes, &options())?;
    let shape: Vec<usize> = model.input_shape().iter().map(|size| size.unwrap_or(2)).collect();
    let inputs = vec![0.25; shape.iter().product()];
    let weights = model.initial_weights();
    let mut trainer = trainer::<B>(&model);
    let (output, _) = trainer.forward(&weights, &inputs, &shape)?;
    let batch = Batch { inputs, shape, targets: Targets::Values(vec![0.5; output.len()]) };
    let update = trainer.gradient(&weights, &batch, Loss::Mse)?;
    assert_eq!(update.gradient.len(), model.dim());
    #[cfg(feature = "tract")]
    predict::<Tract>(&model, &weights, &batch)?;
    predict::<DefaultBackend>(&model, &weights, &batch)
}

/// Both engines that programs forecast with.
fn predict<E: InferenceEngine>(model: &Model, weights: &[f32], batch: &Batch) -> Result<(), ModelError> {
    Predictor::<E>::on(model, weights)?.predict(&batch.inputs, &batch.shape).map(drop)
}

fn within_memory(what: &str, work: impl FnOnce()) {
    let before = NOW.replace(0);
    PEAK.set(0);
    work();
    let used = PEAK.get();
    NOW.set(NOW.get() + before);
    assert!(used <= MEMORY_MAX, "{what} took {used} bytes");
}

#[test]
fn truncated_files_are_refused() {
    for name in ["electricity-rnn", "dqn-nature"] {
        let bytes = shipped::by_name(name).unwrap();
        for length in 0..bytes.len().min(3_000) {
            assert!(Model::load(&bytes[..length], &options()).is_err(), "{name} cut at {length}");
        }
    }
}

/// One byte changed, some bytes removed or doubled, or a field given another value.
fn mutate(original: &[u8], seed: &mut u64) -> Vec<u8> {
    if next(seed).is_multiple_of(2) {
        return mutate_structure(original, seed);
    }
    let mut bytes = original.to_vec();
    for _ in 0..1 + next(seed) % 4 {
        // Most of a file are weights, which may hold anything; the structure is at its ends.
        let near = 1 + next(seed) as usize % bytes.len().min(1_500);
        let place = if next(seed).is_multiple_of(2) { near - 1 } else { bytes.len() - near };
        match next(seed) % 4 {
            0 => bytes[place] = next(seed) as u8,
            1 => bytes[place] ^= 1 << (next(seed) % 8),
            2 => {
                bytes.drain(place..(place + 1 + next(seed) as usize % 8).min(bytes.len()));
            }
            _ => {
                let end = (place + 1 + next(seed) as usize % 8).min(bytes.len());
                let copy = bytes[place..end].to_vec();
                bytes.splice(place..place, copy);
            }
        }
        if bytes.is_empty() {
            break;
        }
    }
    bytes
}

const ODD: &[i64] = &[0, 1, -1, 2, 3, -2, 7, 64, 1 << 20, 1 << 40, i64::MAX, i64::MIN];

fn mutate_structure(original: &[u8], seed: &mut u64) -> Vec<u8> {
    let mut file = pb::ModelProto::decode(original).unwrap();
    let mut pick = |length: usize| next(seed) as usize % length.max(1);
    let odd = ODD[pick(ODD.len())];
    let graph = file.graph.as_mut().unwrap();
    let nodes = graph.node.len();
    let node = pick(nodes);
    let (other, operator) = (pick(nodes), pick(OPERATORS.len()));
    let other = graph.node[other].clone();
    match pick(12) {
        0 => graph.node[node].op_type = OPERATORS[operator].to_owned(),
        1 => {
            graph.node.remove(node);
        }
        2 => graph.node.push(other),
        3 => {
            let input = pick(graph.node[node].input.len());
            if let Some(input) = graph.node[node].input.get_mut(input) {
                *input = other.output[0].clone();
            }
        }
        4 => graph.node[node].input.push(other.input[0].clone()),
        5 => {
            graph.node[node].input.pop();
        }
        6 | 7 => {
            let attribute = pick(graph.node[node].attribute.len());
            if let Some(attribute) = graph.node[node].attribute.get_mut(attribute) {
                attribute.i = odd;
                let place = pick(attribute.ints.len());
                if let Some(value) = attribute.ints.get_mut(place) {
                    *value = odd;
                }
            }
        }
        8 => {
            let tensor = pick(graph.initializer.len());
            if let Some(tensor) = graph.initializer.get_mut(tensor) {
                let place = pick(tensor.dims.len());
                if let Some(size) = tensor.dims.get_mut(place) {
                    *size = odd;
                }
            }
        }
        9 => {
            let tensor = pick(graph.initializer.len());
            if let Some(tensor) = graph.initializer.get_mut(tensor) {
                tensor.data_type = odd as i32;
            }
        }
        10 => {
            let value = Some(pb::tensor_shape_proto::dimension::Value::DimValue(odd));
            if let Some(pb::type_proto::Value::TensorType(tensor)) =
                graph.input[0].r#type.as_mut().and_then(|t| t.value.as_mut())
            {
                let dims = &mut tensor.shape.as_mut().unwrap().dim;
                let place = pick(dims.len());
                dims[place].value = value;
            }
        }
        _ => file.opset_import[0].version = 10 + odd.rem_euclid(14),
    }
    file.encode_to_vec()
}

const OPERATORS: &[&str] = &[
    "Add",
    "MatMul",
    "Gemm",
    "Conv",
    "MaxPool",
    "AveragePool",
    "Softmax",
    "LSTM",
    "GRU",
    "RNN",
    "Reshape",
    "Transpose",
    "Squeeze",
    "Unsqueeze",
    "Concat",
    "Slice",
    "Gather",
    "Split",
    "Expand",
    "Shape",
    "ReduceMean",
    "Relu",
    "Loop",
];

#[test]
fn ten_thousand_mutations_never_panic_and_stay_within_memory() {
    let mut seed = 20_230_723;
    let (mut worked, mut refused) = (0, 0);
    for round in 0..10_000 / shipped::NAMES.len() {
        for name in shipped::NAMES {
            let before = seed;
            let bytes = mutate(shipped::by_name(name).unwrap(), &mut seed);
            within_memory(&format!("{name}, round {round}, seed {before}"), || match exercise(&bytes) {
                Ok(()) => worked += 1,
                Err(_) => refused += 1,
            });
        }
    }
    // Both outcomes happen, so the mutations are neither harmless nor all refused at the first byte.
    assert!(worked > 500 && refused > 500, "{worked} worked, {refused} were refused");
}

/// The models that the other backend computes quickly.
#[cfg(feature = "ndarray")]
#[test]
fn mutations_never_panic_on_the_other_backend_either() {
    let mut seed = 20_230_723;
    for _ in 0..500 {
        for name in ["electricity-rnn", "hft-mlp", "dqn-grid"] {
            let bytes = mutate(shipped::by_name(name).unwrap(), &mut seed);
            within_memory(name, || drop(exercise_on::<evenhand_models::backend::NdArray>(&bytes)));
        }
    }
}

fn refusal(b: &OnnxBuilder) -> String {
    exercise(&b.bytes()).unwrap_err().to_string()
}

fn linear() -> OnnxBuilder {
    let mut b = OnnxBuilder::new(13);
    b.input("x", &[DeclaredDim::Free("batch"), DeclaredDim::Fixed(2)]);
    b.floats("w", &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    b
}

#[test]
fn cycles_and_unknown_values_are_named() {
    let mut b = linear();
    b.node("Add", &["x", "z"], &["y"], &[]).node("MatMul", &["y", "w"], &["z"], &[]).output("z");
    assert!(
        refusal(&b).contains("node `Add y` uses `z`, which nothing before it produces: the graph is cyclic")
    );
    let mut b = linear();
    b.node("MatMul", &["x", "w"], &["y"], &[]).node("Relu", &["x"], &["y"], &[]).output("y");
    assert!(refusal(&b).contains("`y` is defined twice"));
}

#[test]
fn unsupported_operators_attributes_and_types_are_named_with_what_is_supported() {
    let mut b = linear();
    b.node("Einsum", &["x", "w"], &["y"], &[("equation", Attr::Text("ij,jk->ik"))]).output("y");
    let message = refusal(&b);
    assert!(
        message.contains("node `Einsum y`: operator Einsum is not supported; supported are Add, "),
        "{message}"
    );

    let mut b = linear();
    b.node("MatMul", &["x", "w"], &["y"], &[("sideways", Attr::Int(1))]).output("y");
    let message = refusal(&b);
    assert!(message.contains("node `MatMul y` (MatMul): attribute `sideways` is not supported"), "{message}");

    let mut b = linear();
    b.node("Gemm", &["x", "w"], &["y"], &[("alpha", Attr::Int(1))]).output("y");
    assert!(refusal(&b).contains("attribute `alpha`: expected type FLOAT"));

    let mut b = linear();
    b.graph().initializer[0].data_type = pb::tensor_proto::DataType::Double as i32;
    b.node("MatMul", &["x", "w"], &["y"], &[]).output("y");
    let message = refusal(&b);
    assert!(
        message.contains("tensor `w`: element type DOUBLE is not supported; supported are FLOAT"),
        "{message}"
    );

    let mut b = linear();
    b.node("Cast", &["x"], &["i"], &[("to", Attr::Int(7))])
        .node("Gather", &["w", "i"], &["y"], &[])
        .output("y");
    assert!(refusal(&b).contains("node `Cast i` (Cast): input 0"));

    for opset in [10, 22] {
        let mut b = linear();
        b.file.opset_import[0].version = opset;
        b.node("MatMul", &["x", "w"], &["y"], &[]).output("y");
        assert!(
            refusal(&b).contains(&format!("operator set {opset} is not supported; supported are 11 to 21"))
        );
    }
}

#[test]
fn huge_dimensions_are_refused_before_anything_is_allocated() {
    within_memory("huge dimensions", || {
        for dims in [vec![1 << 62, 4], vec![i64::MAX], vec![1 << 31, 1 << 31, 1 << 31], vec![-1]] {
            let mut b = linear();
            b.graph().initializer[0].dims = dims;
            b.node("MatMul", &["x", "w"], &["y"], &[]).output("y");
            refusal(&b);
        }
        let mut b = linear();
        b.ints("shape", &[2], &[1 << 40, 2]).node("Expand", &["x", "shape"], &["e"], &[]);
        b.node("MatMul", &["e", "w"], &["y"], &[]).output("y");
        assert!(refusal(&b).contains("tensor_elements_max"));

        let mut b = linear();
        b.ints("shape", &[2], &[1 << 21, 2]).ints("up", &[2], &[1 << 20, 2]);
        b.node("ConstantOfShape", &["shape"], &["e"], &[]).node("MatMul", &["e", "w"], &["f"], &[]);
        b.node("ReduceMean", &["f"], &["g"], &[("axes", Attr::Ints(vec![0]))]).node(
            "Add",
            &["g", "x"],
            &["y"],
            &[],
        );
        b.output("y");
        assert!(refusal(&b).contains("activation_bytes_max"));

        let mut b = linear();
        b.node("MatMul", &["x", "w"], &["m"], &[]).output("y");
        let huge = Attr::Ints(vec![0, 0, 1 << 60, 0]);
        b.node("Conv", &["m", "w"], &["y"], &[("pads", huge)]);
        assert!(refusal(&b).contains("attribute `pads`"));

        // Few outputs, but a border of billions of zeros.
        let mut b = OnnxBuilder::new(13);
        b.input(
            "x",
            &[
                DeclaredDim::Free("batch"),
                DeclaredDim::Fixed(1),
                DeclaredDim::Fixed(8),
                DeclaredDim::Fixed(8),
            ],
        );
        b.floats("w", &[1, 1, 3, 3], &[1.0; 9]).output("y");
        let far = |count| Attr::Ints(vec![60_000; count]);
        b.node("Conv", &["x", "w"], &["y"], &[("pads", far(4)), ("strides", far(2))]);
        assert!(refusal(&b).contains("tensor_elements_max"), "{}", refusal(&b));
    });
}

/// Two bytes of an empty node decode to hundreds: a file of nothing else must not be decoded.
#[test]
fn files_that_grow_when_decoded_are_refused() {
    let mut nodes = Vec::new();
    (0..500_000).for_each(|_| nodes.extend([0x0a, 0x00]));
    let mut bytes = vec![0x3a];
    prost::encoding::encode_varint(nodes.len() as u64, &mut bytes);
    bytes.extend(nodes);
    within_memory("a file of empty nodes", || {
        let error = Model::load(&bytes, &options()).unwrap_err();
        assert!(matches!(error, ModelError::Limit { name: "decoded_bytes_max", .. }), "{error}");
    });
    let error = Model::load(&vec![0; 2 << 20], &options()).unwrap_err();
    assert!(matches!(error, ModelError::Limit { name: "file_bytes_max", .. }), "{error}");
}

#[test]
fn files_that_refer_to_data_or_code_outside_are_refused() {
    let mut b = linear();
    b.graph().initializer[0].data_location = Some(1);
    b.graph().initializer[0].external_data =
        vec![pb::StringStringEntryProto { key: "location".to_owned(), value: "/etc/passwd".to_owned() }];
    b.node("MatMul", &["x", "w"], &["y"], &[]).output("y");
    assert!(refusal(&b).contains("data outside the file"));
    let mut b = linear();
    b.node("MatMul", &["x", "w"], &["y"], &[]).output("y");
    b.file.functions = vec![pb::FunctionProto::default()];
    assert!(refusal(&b).contains("local functions are not supported"));
}
