//! Gradients against PyTorch's, in double precision where it has them.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;

use evenhand_models::{Batch, Engine, InferenceEngine, LoadOptions, Loss, Model, Targets};
use serde_json::Value;
use support::{on_every_backend, predictor, trainer, with_every_inference_engine};

on_every_backend!(
    mlp_with_squared_error,
    mlp_with_cross_entropy,
    rnn_as_one_operator_and_unrolled,
    cnn_by_hand_and_from_both_exporters,
);

/// Relative to the largest component of each tensor.
const TOLERANCE: f32 = 1e-4;

fn read(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn json(name: &str) -> Value {
    serde_json::from_slice(&read(name)).unwrap()
}

fn floats(value: &Value) -> Vec<f32> {
    value["data"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32).collect()
}

fn shape(value: &Value) -> Vec<usize> {
    value["shape"].as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as usize).collect()
}

fn classes(value: &Value) -> Targets {
    Targets::Classes(value.as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as u32).collect())
}

fn largest(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |max, v| v.abs().max(max))
}

fn assert_close(what: &str, found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = largest(expected).max(1e-12);
    let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst <= tolerance * scale, "{what}: off by {worst:e} where the largest is {scale:e}");
}

fn check<B: Engine>(
    file: &str,
    batch: &Batch,
    loss: Loss,
    expected_loss: f64,
    gradients: &BTreeMap<String, Vec<f32>>,
) {
    // Initial states are part of one of the files; PyTorch does not train them.
    let options = LoadOptions { trainable: Some(gradients.keys().cloned().collect()), ..Default::default() };
    let model = Model::load(&read(file), &options).unwrap();
    let weights = model.initial_weights();
    let found = trainer::<B>(&model).gradient(&weights, batch, loss).unwrap();
    assert!(
        (f64::from(found.loss) - expected_loss).abs() < 1e-5,
        "{file}: loss {} for {expected_loss}",
        found.loss
    );
    assert_eq!(model.parameters().len(), gradients.len(), "{file}");
    for parameter in model.parameters() {
        let part = &found.gradient[parameter.offset..parameter.offset + parameter.len()];
        assert_close(&format!("{file} {}", parameter.name), part, &gradients[&parameter.name], TOLERANCE);
    }
    let burn = trainer::<B>(&model).forward(&weights, &batch.inputs, &batch.shape).unwrap().0;
    with_every_inference_engine!(assert_predicts, B, file, &model, batch, &burn);
}

/// The second parameter is the backend that computed the outputs.
fn assert_predicts<E: InferenceEngine, B: Engine>(file: &str, model: &Model, batch: &Batch, outputs: &[f32]) {
    let mut predictor = predictor::<E>(model, &model.initial_weights());
    let found = predictor.predict(&batch.inputs, &batch.shape).unwrap();
    assert_close(&format!("{file}: {} against {}", E::NAME, B::BACKEND), &found, outputs, 1e-5);
}

fn gradients(value: &Value) -> BTreeMap<String, Vec<f32>> {
    value.as_object().unwrap().iter().map(|(name, tensor)| (name.clone(), floats(tensor))).collect()
}

fn mlp_with_squared_error<B: Engine>() {
    let golden = json("e_mlp_mse.json");
    let targets = Targets::Values(floats(&golden["target"]));
    let batch = Batch { inputs: floats(&golden["x"]), shape: shape(&golden["x"]), targets };
    let loss = golden["loss_f64"].as_f64().unwrap();
    check::<B>("e_mlp_mse.onnx", &batch, Loss::Mse, loss, &gradients(&golden["grads_f64"]));
}

fn mlp_with_cross_entropy<B: Engine>() {
    let golden = json("e_mlp_ce.json");
    let targets = classes(&golden["target"]);
    let batch = Batch { inputs: floats(&golden["x"]), shape: shape(&golden["x"]), targets };
    let loss = golden["loss_f64"].as_f64().unwrap();
    check::<B>("e_mlp_ce.onnx", &batch, Loss::CrossEntropy, loss, &gradients(&golden["grads_f64"]));
}

fn rnn_as_one_operator_and_unrolled<B: Engine>() {
    let golden = json("e_rnn.json");
    let targets = Targets::Values(floats(&golden["target"]));
    let batch = Batch { inputs: floats(&golden["x"]), shape: shape(&golden["x"]), targets };
    let loss = golden["loss_f64"].as_f64().unwrap();
    check::<B>("e_rnn_op.onnx", &batch, Loss::Mse, loss, &gradients(&golden["grads_op_f64"]));
    check::<B>("e_rnn_unrolled.onnx", &batch, Loss::Mse, loss, &gradients(&golden["grads_unrolled_f64"]));
}

fn cnn_by_hand_and_from_both_exporters<B: Engine>() {
    let golden = json("e_mnist_cnn.json");
    let bytes = read("e_mnist_cnn.f32");
    let mut values = bytes.as_chunks::<4>().0.iter().map(|word| f32::from_le_bytes(*word));
    let mut tensors = BTreeMap::new();
    for entry in golden["layout"].as_array().unwrap() {
        let dims: Vec<usize> =
            entry[1].as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as usize).collect();
        let data: Vec<f32> = values.by_ref().take(dims.iter().product()).collect();
        tensors.insert(entry[0].as_str().unwrap().to_owned(), data);
    }
    let inputs = tensors.remove("x").unwrap();
    tensors.remove("logp");
    let gradients =
        tensors.into_iter().map(|(k, v)| (k.trim_start_matches("grad64.").to_owned(), v)).collect();
    let batch = Batch { inputs, shape: vec![3, 1, 32, 32], targets: classes(&golden["target"]) };
    let loss = golden["loss_f64"].as_f64().unwrap();
    for file in [
        "e_mnist_cnn.onnx",
        "e_mnist_cnn_torch_export_torchscript.onnx",
        "e_mnist_cnn_torch_export_dynamo.onnx",
    ] {
        check::<B>(file, &batch, Loss::Nll, loss, &gradients);
    }
}
