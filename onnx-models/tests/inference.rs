//! tract's outputs are burn's, before and after other weights are given.
#![allow(clippy::unwrap_used)]

mod support;

use evenhand_models::{Engine, Predictor, shipped};
use support::{on_every_backend, shipped_model, trainer, uniform};

on_every_backend!(tract_agrees_on_every_shipped_model_before_and_after_a_swap_of_weights);

fn tract_agrees_on_every_shipped_model_before_and_after_a_swap_of_weights<B: Engine>() {
    for name in shipped::NAMES {
        let model = shipped_model(name);
        let mut weights = model.initial_weights();
        let mut predictor = Predictor::new(&model, &weights).unwrap();
        let mut trainer = trainer::<B>(&model);
        let mut seed = 5;
        let shapes = [1, 3, 4]
            .map(|free| model.input_shape().iter().map(|size| size.unwrap_or(free)).collect::<Vec<usize>>());
        // Every shape is predicted after every swap, so that what was optimised earlier must take up the new weights.
        for swap in 0..3 {
            for shape in &shapes {
                let inputs: Vec<f32> = (0..shape.iter().product()).map(|_| uniform(&mut seed)).collect();
                let (burn, _) = trainer.forward(&weights, &inputs, shape).unwrap();
                let tract = predictor.predict(&inputs, shape).unwrap();
                let scale = burn.iter().fold(1.0f32, |max, v| max.max(v.abs()));
                let off = burn.iter().zip(&tract).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(
                    burn.len() == tract.len() && off <= 1e-5 * scale,
                    "{name} {shape:?} after {swap} swaps: off by {off} of {scale}"
                );
            }
            weights.iter_mut().for_each(|w| *w += 0.02 * uniform(&mut seed));
            predictor.set_weights(&weights).unwrap();
        }
    }
}
