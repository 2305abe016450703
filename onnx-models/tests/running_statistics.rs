//! Running statistics are constants of the file, also where an exporter stored them in the tensor of a weight.
#![allow(clippy::unwrap_used)]

mod support;

use evenhand_models::{Batch, Engine, InferenceEngine, LoadOptions, Loss, Model, Predictor, Targets};
use support::{
    Attr, DeclaredDim, OnnxBuilder, load, on_every_backend, predictor, trainer, with_every_inference_engine,
};

on_every_backend!(
    statistics_stored_as_weights_compute_as_statistics_of_their_own,
    statistics_as_identity_of_weights_compute_as_statistics_of_their_own,
);

const SCALE: [f32; 3] = [0.5, 1.0, 2.0];
const BIAS: [f32; 3] = [0.1, -0.2, 0.3];

/// x · gain, normalised with these tensors as running mean and variance; `prepare` defines what they are.
fn normalised(mean: &str, variance: &str, prepare: impl FnOnce(&mut OnnxBuilder)) -> OnnxBuilder {
    let mut b = OnnxBuilder::new(15);
    b.input("x", &[DeclaredDim::Free("batch"), DeclaredDim::Fixed(3)]);
    b.floats("gain", &[3], &[1.5, -1.0, 0.5]).node("Mul", &["x", "gain"], &["g"], &[]);
    prepare(&mut b);
    b.node("BatchNormalization", &["g", "scale", "bias", mean, variance], &["y"], &[]).output("y");
    b
}

fn weights_in_initializers(b: &mut OnnxBuilder) {
    b.floats("scale", &[3], &SCALE).floats("bias", &[3], &BIAS);
}

fn separate() -> OnnxBuilder {
    normalised("mean", "var", |b| {
        weights_in_initializers(b);
        b.floats("mean", &[3], &BIAS).floats("var", &[3], &SCALE);
    })
}

fn names(model: &Model) -> Vec<&str> {
    model.parameters().iter().map(|parameter| parameter.name.as_str()).collect()
}

/// Outputs, gradients and predictions at moved weights, and those of the exported file, bit for bit.
fn assert_computes_as_separate<B: Engine>(what: &str, merged: &OnnxBuilder) {
    let (merged, separate) = (load(merged), load(&separate()));
    assert_eq!(names(&merged), ["gain", "scale", "bias"], "{what}");
    assert_eq!(merged.initial_weights(), separate.initial_weights(), "{what}");
    let moved: Vec<f32> = merged.initial_weights().iter().map(|w| w * 1.5 + 0.25).collect();
    let shape = vec![2, 3];
    let inputs = vec![0.7, -0.4, 0.2, -0.9, 0.5, 0.8];
    let batch =
        Batch { inputs: inputs.clone(), shape: shape.clone(), targets: Targets::Values(vec![0.3; 6]) };
    let expected = trainer::<B>(&separate).gradient(&moved, &batch, Loss::Mse).unwrap();
    let predicted = Predictor::new(&separate, &moved).unwrap().predict(&inputs, &shape).unwrap();

    let exported = Model::load(&merged.export(&moved, &[]).unwrap(), &LoadOptions::default()).unwrap();
    assert_eq!(exported.digest(), merged.digest(), "{what}");
    assert_eq!(exported.initial_weights(), moved, "{what}");
    for (model, state) in [(&merged, "as loaded"), (&exported, "exported")] {
        let found = trainer::<B>(model).gradient(&moved, &batch, Loss::Mse).unwrap();
        assert_eq!(found, expected, "{what}, {state}");
        let (what, one) = (&format!("{what}, {state}"), (&inputs[..], &shape[..]));
        let mut folding = Predictor::folding(model, &model.initial_weights()).unwrap();
        assert_moves(&mut folding, &moved, one, &predicted, what);
        with_every_inference_engine!(assert_engine_moves; model, &moved, one, what);
    }
}

fn assert_engine_moves<E: InferenceEngine>(
    model: &Model,
    moved: &[f32],
    batch: (&[f32], &[usize]),
    what: &str,
) {
    let expected = predictor::<E>(&load(&separate()), moved).predict(batch.0, batch.1).unwrap();
    let mut predictor = predictor::<E>(model, &model.initial_weights());
    assert_moves(&mut predictor, moved, batch, &expected, what);
}

fn assert_moves<E: InferenceEngine>(
    predictor: &mut Predictor<E>,
    moved: &[f32],
    (inputs, shape): (&[f32], &[usize]),
    expected: &[f32],
    what: &str,
) {
    predictor.predict(inputs, shape).unwrap();
    predictor.set_weights(moved).unwrap();
    let found = predictor.predict(inputs, shape).unwrap();
    assert!(support::off(&found, expected) < 1e-6, "{}, {what}: {found:?}, {expected:?}", E::NAME);
}

fn statistics_stored_as_weights_compute_as_statistics_of_their_own<B: Engine>() {
    let initializers = normalised("bias", "scale", weights_in_initializers);
    assert_computes_as_separate::<B>("initializers", &initializers);
    let inputs = normalised("bias", "scale", |b| {
        weights_in_initializers(b);
        b.input("scale", &[DeclaredDim::Fixed(3)]).input("bias", &[DeclaredDim::Fixed(3)]);
    });
    assert_computes_as_separate::<B>("inputs with defaults", &inputs);
    let constants = normalised("bias", "scale", |b| {
        let tensor = Attr::Tensor(support::floats("", &[3], &SCALE));
        b.node("Constant", &[], &["scale"], &[("value", tensor)]);
        b.node("Constant", &[], &["bias"], &[("value_floats", Attr::Floats(BIAS.to_vec()))]);
    });
    assert_computes_as_separate::<B>("Constant nodes", &constants);
    let taken = normalised("bias", "scale", |b| {
        weights_in_initializers(b);
        b.floats("scale.fixed", &[1], &[9.0]);
    });
    assert_computes_as_separate::<B>("a name that is in use", &taken);
}

fn statistics_as_identity_of_weights_compute_as_statistics_of_their_own<B: Engine>() {
    let once = normalised("mean", "var", |b| {
        weights_in_initializers(b);
        b.node("Identity", &["scale"], &["var"], &[]).node("Identity", &["bias"], &["mean"], &[]);
    });
    assert_computes_as_separate::<B>("one Identity", &once);
    let twice = normalised("mean", "var", |b| {
        weights_in_initializers(b);
        b.node("Identity", &["scale"], &["v"], &[]).node("Identity", &["v"], &["var"], &[]);
        b.node("Identity", &["bias"], &["mean"], &[]);
    });
    assert_computes_as_separate::<B>("two Identity nodes", &twice);
    // Stored under the statistics' names, with the weights as Identity of them.
    let mut b = OnnxBuilder::new(15);
    b.input("x", &[DeclaredDim::Free("batch"), DeclaredDim::Fixed(3)]);
    b.floats("mean", &[3], &BIAS).floats("var", &[3], &SCALE);
    b.node("Identity", &["var"], &["scale"], &[]).node("Identity", &["mean"], &["bias"], &[]);
    b.node("BatchNormalization", &["x", "scale", "bias", "mean", "var"], &["y"], &[]).output("y");
    let model = load(&b);
    assert_eq!(names(&model), ["var", "mean"]);
    let moved = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0];
    let (found, _) = trainer::<B>(&model).forward(&moved, &[0.7, -0.4, 0.2], &[1, 3]).unwrap();
    let by_hand: Vec<f32> =
        (0..3).map(|i| ([0.7, -0.4, 0.2][i] - BIAS[i]) / (SCALE[i] + 1e-5).sqrt()).collect();
    assert!(support::off(&found, &by_hand) < 1e-6, "{found:?} instead of {by_hand:?}");
}

#[test]
fn tensors_that_statistics_are_computed_from_are_not_trained() {
    let from_constants = normalised("bias", "twice", |b| {
        weights_in_initializers(b);
        b.floats("half", &[3], &[0.25, 0.5, 1.0]).floats("two", &[1], &[2.0]);
        b.node("Mul", &["half", "two"], &["twice"], &[]);
    });
    assert_eq!(names(&load(&from_constants)), ["gain", "scale", "bias"]);
    let from_weight = normalised("bias", "twice", |b| {
        weights_in_initializers(b);
        b.floats("two", &[1], &[2.0]).node("Mul", &["scale", "two"], &["twice"], &[]);
    });
    assert_eq!(names(&load(&from_weight)), ["gain", "bias"], "the variance must not follow the scale");
    let listed = LoadOptions { trainable: Some(vec!["scale".to_owned()]), ..Default::default() };
    let error = Model::load(&from_weight.bytes(), &listed).unwrap_err().to_string();
    assert!(error.contains("`scale` cannot be trained: it is a running statistic"), "{error}");
}

/// Bounds, ratios and exponents are taken from the file in the same way.
#[test]
fn other_fixed_inputs_do_not_follow_weights_either() {
    let mut b = OnnxBuilder::new(15);
    b.input("x", &[DeclaredDim::Free("batch"), DeclaredDim::Fixed(1)]).floats("w", &[1], &[2.0]);
    b.node("Mul", &["x", "w"], &["m"], &[]).node("Pow", &["m", "w"], &["y"], &[]).output("y");
    let model = load(&b);
    assert_eq!(names(&model), ["w"]);
    let mut predictor = Predictor::new(&model, &[3.0]).unwrap();
    assert_eq!(predictor.predict(&[2.0], &[1, 1]).unwrap(), [36.0], "(2·3)², not (2·3)³");
}
