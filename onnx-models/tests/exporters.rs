//! Files of both PyTorch exporters in several operator sets, loaded unchanged and trained as in PyTorch.
#![allow(clippy::unwrap_used)]

mod support;

use evenhand_models::{Batch, Engine, InferenceEngine, LoadOptions, Loss, Model, ModelError, Targets};
use serde_json::Value;
use support::{on_every_backend, predictor, trainer, with_every_inference_engine};

on_every_backend!(files_of_both_exporters_train_as_in_pytorch);

fn floats(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32).collect()
}

/// The parameters PyTorch has, by name where the exporter preserved names; otherwise all that are trainable.
fn load(bytes: &[u8], record: &Value) -> Model {
    let names =
        record["parameters"].as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect();
    match Model::load(bytes, &LoadOptions { trainable: Some(names), ..Default::default() }) {
        Err(ModelError::Trainable { .. }) => Model::load(bytes, &LoadOptions::default()).unwrap(),
        other => other.unwrap(),
    }
}

fn check<E: InferenceEngine, B: Engine>(path: &std::path::Path, record: &Value) -> Result<(), String> {
    let model = load(&std::fs::read(path).unwrap(), record);
    let weights = model.initial_weights();
    let loss: Loss = record["loss"].as_str().unwrap().parse().unwrap();
    let targets = match loss {
        Loss::CrossEntropy => {
            Targets::Classes(floats(&record["targets"]).iter().map(|&v| v as u32).collect())
        }
        _ => Targets::Values(floats(&record["targets"])),
    };
    let shape = floats(&record["shape"]).iter().map(|&v| v as usize).collect();
    let batch = Batch { inputs: floats(&record["inputs"]), shape, targets };
    let close = |what: &str, found: &[f32], expected: &[f32], tolerance: f32| {
        let scale = expected.iter().fold(1e-3f32, |max, v| max.max(v.abs()));
        let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        match found.len() == expected.len() && off <= tolerance * scale {
            true => Ok(()),
            false => Err(format!("{what}: {} for {} values, off by {off}", found.len(), expected.len())),
        }
    };
    let mut trainer = trainer::<B>(&model);
    let (output, _) = trainer.forward(&weights, &batch.inputs, &batch.shape).map_err(|e| e.to_string())?;
    close("output", &output, &floats(&record["output"]), 1e-5)?;
    let found = trainer.gradient(&weights, &batch, loss).map_err(|e| e.to_string())?;
    close("loss", &[found.loss], &[record["value"].as_f64().unwrap() as f32], 1e-5)?;
    let mut gradient = found.gradient;
    gradient.sort_by(f32::total_cmp);
    close("gradient", &gradient, &floats(&record["sorted_gradient"]), 1e-4)?;
    let mut predictor = predictor::<E>(&model, &weights);
    let predicted = predictor.predict(&batch.inputs, &batch.shape);
    close(E::NAME, &predicted.map_err(|e| e.to_string())?, &output, 1e-5)?;
    let raised: Vec<f32> = weights.iter().map(|w| w + 0.1).collect();
    let expected = floats(&record["raised_output"]);
    let (raised_output, _) =
        trainer.forward(&raised, &batch.inputs, &batch.shape).map_err(|e| e.to_string())?;
    close("output at raised weights", &raised_output, &expected, 1e-5)?;
    predictor.set_weights(&raised).unwrap();
    let predicted = predictor.predict(&batch.inputs, &batch.shape).map_err(|e| e.to_string())?;
    close(&format!("{} at raised weights", E::NAME), &predicted, &expected, 1e-5)?;
    // Another batch size than the one exported.
    let (one, width) = ([&[1], &batch.shape[1..]].concat(), batch.inputs.len() / batch.shape[0]);
    let (first, _) = trainer.forward(&weights, &batch.inputs[..width], &one).map_err(|e| e.to_string())?;
    close("batch of one", &first, &output[..output.len() / batch.shape[0]], 1e-5)
}

fn collect_error<E: InferenceEngine, B: Engine>(
    path: &std::path::Path,
    record: &Value,
    wrong: &mut Vec<String>,
) {
    if let Err(error) = check::<E, B>(path, record) {
        wrong.push(format!("{}: {error}", path.display()));
    }
}

fn files_of_both_exporters_train_as_in_pytorch<B: Engine>() {
    let folder = format!("{}/tests/exporters", env!("CARGO_MANIFEST_DIR"));
    let (mut seen, mut wrong) = (0, Vec::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "onnx") {
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let record = path.with_file_name(format!("{}.json", name.split('.').next().unwrap()));
        let record = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
        with_every_inference_engine!(collect_error, B, &path, &record, &mut wrong);
        seen += 1;
    }
    wrong.sort();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(seen, 12 * 5, "twelve models, three operator sets of one exporter and two of the other");
}
