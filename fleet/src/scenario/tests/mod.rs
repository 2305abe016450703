//! Known answers of scenarios.

#![allow(clippy::unwrap_used)]

mod corruption;
mod samples;

use std::sync::Arc;

use evenhand_node::reading::LabelledRow;

use super::*;
use crate::data::{self, AsPublished, Dataset, SamplePool, SampleTargets};

/// Ten nodes of synthetic data.
fn config(corruption: Corruption, as_published: AsPublished) -> ScenarioConfig {
    ScenarioConfig {
        dataset: Dataset::Synthetic,
        corruption,
        level: corruption.level_default(),
        spread: QualitySpread::Ladder,
        as_published,
        nodes: 10,
        rounds: 99,
        batch: 6,
        seed: 7,
    }
}

fn stream(config: &ScenarioConfig) -> SampleStream {
    let pool = data::load(config.dataset, None, &config.data_request()).unwrap();
    SampleStream::new(Arc::new(pool), config).unwrap()
}

/// A pool of numbers to forecast, each its own sample number + 1.
fn values(samples: usize) -> SamplePool {
    let numbers: Vec<f32> = (1..=samples).map(|number| number as f32).collect();
    SamplePool {
        shape: vec![1],
        features: numbers.clone(),
        targets: SampleTargets::Values { of: numbers, scales: vec![(10.0, 2.0); samples] },
        owners: None,
        recorded: samples,
        note: None,
    }
}

/// The samples of a node as they are, beside what the node sees.
fn beside(stream: &SampleStream, node: usize) -> Vec<(LabelledRow, LabelledRow)> {
    let rounds = 1..=stream.rounds();
    let pairs = rounds.flat_map(|round| {
        let clean = stream.measured.of(node, round).iter().map(|at| stream.row(*at as usize));
        clean.zip(stream.rows(node, round)).collect::<Vec<_>>()
    });
    pairs.collect()
}

fn share(pairs: &[(LabelledRow, LabelledRow)], differs: impl Fn(&(LabelledRow, LabelledRow)) -> bool) -> f64 {
    pairs.iter().filter(|pair| differs(pair)).count() as f64 / pairs.len() as f64
}
