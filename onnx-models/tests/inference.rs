//! Outputs of every inference engine equal those of training, and those after a swap of weights those of a new predictor.
#![allow(clippy::unwrap_used)]

mod support;

use evenhand_models::{Engine, InferenceEngine, LoadOptions, Model, ModelError, Predictor, shipped};
use support::{on_every_backend, predictor, shipped_model, trainer, uniform, with_every_inference_engine};

on_every_backend!(engines_agree_on_every_shipped_model_before_and_after_a_swap_of_weights);

fn engines_agree_on_every_shipped_model_before_and_after_a_swap_of_weights<B: Engine>() {
    with_every_inference_engine!(agrees_on_every_shipped_model, B);
}

fn agrees_on_every_shipped_model<E: InferenceEngine, B: Engine>() {
    for name in shipped::NAMES {
        let model = shipped_model(name);
        let mut weights = model.initial_weights();
        let mut predictor = predictor::<E>(&model, &weights);
        let mut trainer = trainer::<B>(&model);
        let mut seed = 5;
        let shapes = [1, 3, 4].map(|free| shape(&model, free));
        // Every shape is predicted after every swap, so that each prepared model must use the new weights.
        for swap in 0..3 {
            for shape in &shapes {
                let inputs: Vec<f32> = (0..shape.iter().product()).map(|_| uniform(&mut seed)).collect();
                let (burn, _) = trainer.forward(&weights, &inputs, shape).unwrap();
                let predicted = predictor.predict(&inputs, shape).unwrap();
                let scale = burn.iter().fold(1.0f32, |max, v| max.max(v.abs()));
                let off = burn.iter().zip(&predicted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(
                    burn.len() == predicted.len() && off <= 1e-5 * scale,
                    "{} {name} {shape:?} after {swap} swaps: off by {off} of {scale}",
                    E::NAME
                );
            }
            weights.iter_mut().for_each(|w| *w += 0.02 * uniform(&mut seed));
            predictor.set_weights(&weights).unwrap();
        }
    }
}

fn shape(model: &Model, free: usize) -> Vec<usize> {
    model.input_shape().iter().map(|size| size.unwrap_or(free)).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// One predictor through several swaps, among them back to the first weights, against a new one each time.
fn assert_swaps_equal_new_predictors<E: InferenceEngine>(
    name: &str,
    model: &Model,
    build: impl Fn(&Model, &[f32]) -> Result<Predictor<E>, ModelError>,
) {
    let first = model.initial_weights();
    let mut seed = 9;
    let second: Vec<f32> = first.iter().map(|w| w + 0.02 * uniform(&mut seed)).collect();
    let shapes = [1, 3].map(|free| shape(model, free));
    let mut reused = build(model, &first).unwrap();
    for weights in [&first, &second, &first, &second] {
        reused.set_weights(weights).unwrap();
        let mut new = build(model, weights).unwrap();
        for shape in &shapes {
            let inputs: Vec<f32> = (0..shape.iter().product()).map(|_| uniform(&mut seed)).collect();
            // Twice, because values computed from weights alone may be cached by the first prediction.
            for _ in 0..2 {
                let (found, expected) =
                    (reused.predict(&inputs, shape).unwrap(), new.predict(&inputs, shape).unwrap());
                assert_eq!(bits(&found), bits(&expected), "{} {name} {shape:?}", E::NAME);
            }
        }
    }
}

fn swaps_equal_new_predictors<E: InferenceEngine>(name: &str, model: &Model) {
    assert_swaps_equal_new_predictors(name, model, Predictor::<E>::on);
}

#[test]
fn swapped_weights_give_the_outputs_of_a_new_predictor_bit_for_bit() {
    let check = |name: &str, model: &Model| {
        with_every_inference_engine!(swaps_equal_new_predictors; name, model);
        assert_swaps_equal_new_predictors(name, model, Predictor::folding);
    };
    for name in shipped::NAMES {
        check(name, &shipped_model(name));
    }
    for name in
        ["fresh-norm.torchscript.17", "fresh-norm.dynamo.21", "lstm.torchscript.17", "attention.dynamo.21"]
    {
        let path = format!("{}/tests/exporters/{name}.onnx", env!("CARGO_MANIFEST_DIR"));
        let model = Model::load(&std::fs::read(path).unwrap(), &LoadOptions::default()).unwrap();
        check(name, &model);
    }
}

#[test]
fn weights_of_the_wrong_length_are_refused_and_the_previous_ones_stay() {
    let model = shipped_model("hft-mlp");
    let mut predictor = Predictor::new(&model, &model.initial_weights()).unwrap();
    let inputs = [0.25; 144];
    let before = predictor.predict(&inputs, &[1, 144]).unwrap();
    assert!(predictor.set_weights(&[1.0; 3]).is_err());
    assert_eq!(bits(&predictor.predict(&inputs, &[1, 144]).unwrap()), bits(&before));
    assert_eq!(predictor.model().digest(), model.digest());
}

/// A program keeps one predictor a graph and moves it between threads.
#[test]
fn predictors_can_be_sent_to_another_thread() {
    fn assert_send<T: Send>() {}
    fn assert_predictor<E: InferenceEngine>() {
        assert_send::<Predictor<E>>();
    }
    with_every_inference_engine!(assert_predictor;);
}
