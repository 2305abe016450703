//! Agreement of the two backends: losses, gradients and outputs of every shipped model.
#![cfg(all(feature = "flex", feature = "ndarray"))]
#![allow(clippy::unwrap_used)]

mod support;

use evenhand_models::backend::{Flex, NdArray};
use evenhand_models::{Sgd, shipped};
use support::{batch, off, shipped_model, trainer, uniform};

/// Relative to the largest value of each tensor: single precision, summed in another order.
const TOLERANCE: f32 = 2e-5;

#[test]
fn gradients_and_outputs_agree_on_every_shipped_model() {
    let mut seed = 17;
    let (mut worst, mut wrong) = (0.0f32, Vec::new());
    for name in shipped::NAMES {
        let model = shipped_model(name);
        let (mut flex, mut ndarray) = (trainer::<Flex>(&model), trainer::<NdArray>(&model));
        let mut weights = model.initial_weights();
        let sizes: &[(usize, usize)] =
            if *name == "dqn-nature" { &[(1, 1), (2, 1)] } else { &[(1, 3), (3, 8), (7, 1)] };
        for &(samples, lags) in sizes {
            let (batch, loss) = batch(&model, samples, lags, &mut seed);
            let mut compare = |what: &str, a: &[f32], b: &[f32]| {
                let off = off(a, b);
                worst = worst.max(off);
                if off.is_nan() || off > TOLERANCE {
                    wrong.push(format!("{name}, batch {samples}: {what} off by {off:e}"));
                }
            };
            let (a, b) = (
                flex.gradient(&weights, &batch, loss).unwrap(),
                ndarray.gradient(&weights, &batch, loss).unwrap(),
            );
            compare("loss", &[a.loss], &[b.loss]);
            for p in model.parameters() {
                let range = p.offset..p.offset + p.len();
                compare(&p.name, &a.gradient[range.clone()], &b.gradient[range]);
            }
            let (a, b) = (
                flex.forward(&weights, &batch.inputs, &batch.shape).unwrap(),
                ndarray.forward(&weights, &batch.inputs, &batch.shape).unwrap(),
            );
            assert_eq!(a.1, b.1, "{name}: shapes");
            compare("output", &a.0, &b.0);
            weights.iter_mut().for_each(|w| *w += 0.02 * uniform(&mut seed));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("largest relative difference {worst:e}");
}

#[test]
fn local_epochs_agree() {
    let model = shipped_model("electricity-rnn");
    let (batch, loss) = batch(&model, 8, 12, &mut 23);
    let sgd = Sgd { epochs: 3, learning_rate: 0.05, momentum: 0.9, batch_size: Some(3) };
    let weights = model.initial_weights();
    let a = trainer::<Flex>(&model).local_epochs(&weights, &batch, loss, &sgd).unwrap();
    let b = trainer::<NdArray>(&model).local_epochs(&weights, &batch, loss, &sgd).unwrap();
    assert!(off(&a.gradient, &b.gradient) < 1e-4, "{}", off(&a.gradient, &b.gradient));
}
