//! Exported models with moved weights and their outputs, for `tests/onnxruntime_check.py`.
//!
//!     cargo run -p evenhand-models --example export_models -- FOLDER
//!
//! Every shipped model and every file of `tests/exporters` becomes `NAME.onnx` beside `NAME.json`, which holds inputs,
//! their shapes, the outputs burn computes, and the metadata that were written.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use evenhand_models::{LoadOptions, Model, Trainer, shipped};

fn main() {
    let folder = std::env::args().nth(1).expect("usage: export_models FOLDER");
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder).unwrap();
    for name in shipped::NAMES {
        write(folder, name, shipped::by_name(name).unwrap());
    }
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exporters");
    for entry in std::fs::read_dir(fixtures).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "onnx") {
            write(folder, path.file_stem().unwrap().to_str().unwrap(), &std::fs::read(&path).unwrap());
        }
    }
}

fn write(folder: &Path, name: &str, bytes: &[u8]) {
    let model = Model::load(bytes, &LoadOptions::default()).unwrap();
    let moved: Vec<f32> =
        model.initial_weights().iter().enumerate().map(|(i, w)| w * 0.9 + 0.01 * (i % 7) as f32).collect();
    let digest: String = model.digest().iter().map(|byte| format!("{byte:02x}")).collect();
    let metadata =
        [("evenhand.federation", "demo"), ("evenhand.round", "42"), ("evenhand.digest", digest.as_str())];
    let exported = model.export(&moved, &metadata).unwrap();
    std::fs::write(folder.join(format!("{name}.onnx")), exported).unwrap();

    let shape: Vec<usize> = model.input_shape().iter().enumerate().map(|(i, d)| d.unwrap_or(3 + i)).collect();
    let inputs: Vec<f32> =
        (0..shape.iter().product()).map(|i: usize| ((i * 37) % 101) as f32 / 50.0 - 1.0).collect();
    let (output, _) = Trainer::new(&model).forward(&moved, &inputs, &shape).unwrap();
    let record = format!(
        r#"{{"inputs":{inputs:?},"shape":{shape:?},"output":{output:?},"metadata":{{"evenhand.federation":"demo","evenhand.round":"42","evenhand.digest":"{digest}"}}}}"#
    );
    std::fs::write(folder.join(format!("{name}.json")), record).unwrap();
}
