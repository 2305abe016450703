#![allow(clippy::unwrap_used)]
//! The attack against batches whose answer is known.

use evenhand_models::{Batch, LoadOptions, Loss, Model, Targets, Trainer};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::network::AttackedLoss;
use super::victim::AttackedModel;
use super::*;

fn random(count: usize, seed: u64) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..count).map(|_| rng.random_range(-1.0..1.0)).collect()
}

#[test]
fn the_networks_are_those_that_are_trained() {
    for (model, shape, loss, attacked) in [
        (AttackedModel::ElectricityRnn, vec![3, 24, 5], Loss::Mse, AttackedLoss::Squared),
        (
            AttackedModel::LoadQuantiles,
            vec![3, 41],
            Loss::Pinball,
            AttackedLoss::Pinball(vec![0.1, 0.5, 0.9]),
        ),
        (AttackedModel::ElectricityMlp, vec![3, 520], Loss::Mse, AttackedLoss::Squared),
    ] {
        let onnx = Model::load(model.file(), &LoadOptions::default()).unwrap();
        let network = model.network();
        network.check(onnx.dim()).unwrap();
        let weights: Vec<f32> = random(onnx.dim(), 1).iter().map(|weight| 0.3 * *weight as f32).collect();
        let values = random(3 * (network.inputs() + network.outputs()), 2);
        let single: Vec<f32> = values.iter().map(|value| *value as f32).collect();
        let (inputs, targets) = single.split_at(3 * network.inputs());
        let batch = Batch { inputs: inputs.to_vec(), shape, targets: Targets::Values(targets.to_vec()) };
        let expected = Trainer::new(&onnx).gradient(&weights, &batch, loss).unwrap().gradient;
        let double: Vec<f64> = weights.iter().map(|weight| f64::from(*weight)).collect();
        let batch = AttackedBatch { samples: 3, values };
        let found = network.gradient(&double, &batch, &attacked);
        let scale = expected.iter().fold(0.0f32, |most, value| most.max(value.abs()));
        assert!(scale > 0.0);
        for (found, expected) in found.iter().zip(&expected) {
            assert!((*found as f32 - expected).abs() < 1e-4 * scale, "{model:?}: {found} {expected}");
        }
    }
}

/// A dense network whose samples are free inputs and targets.
fn problem(samples: usize, noise: f64) -> (LeakProblem, Vec<f64>) {
    let network = AttackedNetwork::Dense(vec![12, 30, 8, 1]);
    let weights = random(network.parameters(), 3);
    let count = samples * 13;
    let truth = random(count, 4);
    let mut problem = LeakProblem {
        network,
        loss: AttackedLoss::Squared,
        layout: SampleLayout { samples, slots: (0..count).map(ValueSlot::Unknown).collect() },
        unknowns: vec![PublicGuess { mean: 0.0, deviation: 1.0 }; count],
        seen: SeenUpdate { vector: Vec::new(), points: vec![(weights, 1.0)], noise: 0.0 },
    };
    problem.seen.vector =
        problem.network.gradient(&problem.seen.points[0].0, &problem.batch(&truth), &problem.loss);
    let length = problem.seen.vector.iter().map(|value| value * value).sum::<f64>().sqrt();
    problem.seen.noise = noise * length / (problem.seen.vector.len() as f64).sqrt();
    let more = random(problem.seen.vector.len(), 5);
    let (vector, deviation) = (&mut problem.seen.vector, problem.seen.noise * 3.0f64.sqrt());
    vector.iter_mut().zip(more).for_each(|(value, more)| *value += deviation * more);
    (problem, truth)
}

fn recovered(problem: &LeakProblem, truth: &[f64]) -> f64 {
    let effort = AttackEffort { starts: 4, each: SearchEffort { steps: 60, inner: 40 } };
    let found = attack(problem, effort, 1).deviations;
    let near = found.iter().zip(truth).filter(|(a, b)| (*a - *b).abs() < 0.1).count();
    near as f64 / truth.len() as f64
}

#[test]
fn one_sample_is_found_and_noise_hides_it() {
    let (plain, truth) = problem(1, 0.0);
    assert_eq!(recovered(&plain, &truth), 1.0);
    let (noisy, truth) = problem(1, 10.0);
    assert!(recovered(&noisy, &truth) < 0.5);
}

#[test]
fn a_single_sample_follows_from_the_first_layer_alone() {
    let (problem, truth) = problem(1, 0.0);
    let found = super::span::by_span(&problem).unwrap();
    assert!(found[..12].iter().zip(&truth).all(|(a, b)| (a - b).abs() < 1e-3), "{found:?} {truth:?}");
}
