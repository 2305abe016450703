#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use evenhand_models::{Batch, LoadOptions, Model, Sgd, Targets, shipped};
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{LossKind, UpdateKind};
use evenhand_protocol::tick::Tick;

use super::PreparedModel;
use crate::core::TrainingJob;

/// A batch whose targets a linear layer explains: three multiples of the first input.
fn batch() -> Batch {
    let inputs: Vec<f32> = (0..64 * 41).map(|i| ((i * 37) % 101) as f32 / 50.0 - 1.0).collect();
    let targets = inputs.chunks(41).flat_map(|row| [0.5, 1.0, 1.5].map(|factor| factor * row[0])).collect();
    Batch { inputs, shape: vec![64, 41], targets: Targets::Values(targets) }
}

fn job(weights: &Arc<[f32]>, kind: UpdateKind) -> TrainingJob {
    TrainingJob {
        id: 1,
        round: 1,
        graph: Digest([0; 32]),
        weights: Arc::clone(weights),
        previous: None,
        batch: batch(),
        fresh: 64,
        row_clip: None,
        loss: LossKind::Pinball,
        kind,
        deadline: Tick(u64::MAX),
        seed: 7,
    }
}

#[test]
fn an_update_neither_has_personal_weights_nor_depends_on_them() {
    let model = Model::load(shipped::LOAD_QUANTILES, &LoadOptions::default()).unwrap();
    let prepared = PreparedModel::new(model.clone());
    let weights: Arc<[f32]> = model.initial_weights().into();
    let mut personal = prepared.initial_personal().to_vec();
    assert_eq!(personal, vec![0.0; 123]);
    let sgd = Sgd { epochs: 20, learning_rate: 0.05, momentum: 0.9, batch_size: None };
    let kinds = [
        UpdateKind::Gradient,
        UpdateKind::Epochs { epochs: 3, learning_rate: 0.1, momentum: 0.9 },
        UpdateKind::Momentum { momentum: 0.9 },
        UpdateKind::Adam,
    ];
    for kind in kinds {
        let before = prepared.train(&job(&weights, kind), || false).unwrap().unwrap();
        assert_eq!(before.vector.len(), model.dim());
        personal = prepared.fit_personal(&weights, &personal, &batch(), LossKind::Pinball, &sgd).unwrap();
        assert!(personal.iter().any(|weight| *weight != 0.0));
        let after = prepared.train(&job(&weights, kind), || false).unwrap().unwrap();
        assert_eq!(before, after);
    }
    assert_eq!(prepared.preparations(), 1, "one trainer serves both");
}

#[test]
fn the_personal_part_corrects_the_shared_one() {
    let model = Model::load(shipped::LOAD_QUANTILES, &LoadOptions::default()).unwrap();
    let prepared = PreparedModel::new(model.clone());
    let weights: Arc<[f32]> = model.initial_weights().into();
    let Batch { inputs, shape, .. } = batch();
    let outputs = |personal: &[f32]| prepared.outputs(&weights, personal, &inputs, &shape).unwrap();
    let initial = prepared.initial_personal().to_vec();
    assert_eq!(outputs(&initial), vec![0.0; 64 * 3], "the last layer begins with zeros");

    let sgd = Sgd { epochs: 300, learning_rate: 0.05, momentum: 0.9, batch_size: None };
    let personal = prepared.fit_personal(&weights, &initial, &batch(), LossKind::Pinball, &sgd).unwrap();
    let Targets::Values(targets) = batch().targets else { unreachable!() };
    let error = |outputs: Vec<f32>| -> f32 {
        outputs.iter().zip(&targets).map(|(output, target)| (output - target).abs()).sum()
    };
    let (naive, fitted) = (error(outputs(&initial)), error(outputs(&personal)));
    assert!(fitted < 0.2 * naive, "{fitted} of {naive} remain");
    // The predictor swaps personal weights back.
    assert_eq!(outputs(&initial), vec![0.0; 64 * 3]);
    assert!(prepared.outputs(&weights, &[0.0; 4], &inputs, &shape).is_err());
    assert!(prepared.fit_personal(&weights, &[0.0; 4], &batch(), LossKind::Pinball, &sgd).is_err());
}

#[test]
fn no_row_moves_the_clipped_mean_by_more_than_its_share() {
    let model = Model::load(shipped::LOAD_QUANTILES, &LoadOptions::default()).unwrap();
    let prepared = PreparedModel::new(model.clone());
    let weights: Arc<[f32]> = vec![0.05; model.dim()].into();
    let gradient = |edit: &dyn Fn(&mut Batch)| {
        let mut job = TrainingJob { row_clip: Some(0.01), ..job(&weights, UpdateKind::Gradient) };
        edit(&mut job.batch);
        prepared.train(&job, || false).unwrap().unwrap().vector
    };
    let other = gradient(&|batch| batch.inputs[..41].fill(900.0));
    let moved: f32 = gradient(&|_| {}).iter().zip(&other).map(|(a, b)| (a - b).powi(2)).sum();
    assert!(moved.sqrt() > 0.0 && moved.sqrt() <= 2.0 * 0.01 / 64.0 * 1.001, "{}", moved.sqrt());
}
