//! Online performance of held models on clean samples, which no member of the federation has.
//!
//! In round t every node holds some model: the one it was last issued. The evaluator scores that model on the union of all
//! nodes' batches of round t + 1 without their noise. It needs only the drawn nodes and the models issued to them, so it is
//! the same for every transport.

mod households;

use std::collections::BTreeMap;
use std::sync::Arc;

use evenhand_models::{Batch, Loss, Model, ModelError, Targets, Trainer};
use rand::seq::index;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

pub use self::households::HouseholdEvaluation;

/// The least share of a meter's mean that relative errors are computed for: below it they are errors relative to nothing.
const MEASURED_MIN: f64 = 0.05;

/// The scores of a held model on the next samples; NaN where one has no meaning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OnlineScore {
    /// Its mean loss.
    pub loss: f64,
    /// Its mean absolute error relative to the measured value.
    pub mape: f64,
    /// The share of samples whose class it predicts.
    pub accuracy: f64,
}

impl OnlineScore {
    const UNKNOWN: Self = Self { loss: f64::NAN, mape: f64::NAN, accuracy: f64::NAN };
}

/// Clean samples to score models on.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluationBatch {
    /// The samples.
    pub batch: Batch,
    /// By sample: mean and deviation that bring a normalised value back; empty for classes and for corrections of quantiles.
    pub scales: Vec<(f64, f64)>,
}

/// The source of the evaluator's samples.
pub trait EvaluationSource: Send {
    /// The union of all nodes' batches of the next round; none where there are no samples.
    fn next(&mut self) -> Option<EvaluationBatch>;
}

/// The models that are issued to the nodes drawn in a round.
#[derive(Debug, Clone)]
pub struct IssuedModels {
    /// The latest weights.
    pub latest: Arc<[f32]>,
    /// By node, where each has a model of its own.
    pub node_models: BTreeMap<usize, Arc<[f32]>>,
}

/// A held model: the round in which it was issued, and the node whose own it is.
type Version = (u32, Option<usize>);

/// Scores the models that the nodes of a fleet hold.
pub struct OnlineEvaluator {
    model: Model,
    loss: Loss,
    source: Box<dyn EvaluationSource>,
    /// By node: the model it holds.
    held: Vec<Version>,
    versions: BTreeMap<Version, Arc<[f32]>>,
}

impl OnlineEvaluator {
    /// An evaluator of `nodes`, all of which hold `initial` until they are issued another model. The samples of round 1
    /// score no model.
    pub fn new(
        model: Model,
        loss: Loss,
        nodes: usize,
        initial: Arc<[f32]>,
        mut source: Box<dyn EvaluationSource>,
    ) -> Self {
        source.next();
        let first = (0, None);
        Self { model, loss, source, held: vec![first; nodes], versions: BTreeMap::from([(first, initial)]) }
    }

    /// The scores of every node after a round in which each of `drawn` was issued its model. Rounds must come in order.
    pub fn round(
        &mut self,
        round: u32,
        drawn: &[usize],
        issued: &IssuedModels,
    ) -> Result<Vec<OnlineScore>, ModelError> {
        for &node in drawn {
            let (version, weights) = match issued.node_models.get(&node) {
                Some(own) => ((round, Some(node)), own),
                None => ((round, None), &issued.latest),
            };
            self.held[node] = version;
            self.versions.entry(version).or_insert_with(|| Arc::clone(weights));
        }
        self.versions.retain(|version, _| self.held.contains(version));
        let Some(ahead) = self.source.next() else { return Ok(vec![OnlineScore::UNKNOWN; self.held.len()]) };
        let scores: BTreeMap<Version, OnlineScore> = self
            .versions
            .par_iter()
            .map_init(
                || Trainer::new(&self.model),
                |trainer, (version, weights)| Ok((*version, ahead.score(trainer, self.loss, weights)?)),
            )
            .collect::<Result<_, ModelError>>()?;
        Ok(self.held.iter().map(|version| scores[version]).collect())
    }
}

impl EvaluationBatch {
    /// At most `samples_max` samples, chosen without replacement.
    pub fn thinned(self, samples_max: usize, rng: &mut ChaCha8Rng) -> Self {
        let samples = self.batch.samples();
        if samples <= samples_max {
            return self;
        }
        self.chosen(&index::sample(rng, samples, samples_max).into_vec())
    }

    /// The samples at these places, in this order.
    pub fn chosen(&self, chosen: &[usize]) -> Self {
        let Batch { inputs, shape, targets } = &self.batch;
        let samples = self.batch.samples().max(1);
        let length = inputs.len() / samples;
        let mut shape = shape.clone();
        shape[0] = chosen.len();
        let batch = Batch {
            inputs: chosen.iter().flat_map(|at| &inputs[at * length..][..length]).copied().collect(),
            shape,
            targets: match targets {
                Targets::Values(values) => {
                    let width = values.len() / samples;
                    let rows = chosen.iter().flat_map(|at| &values[at * width..][..width]);
                    Targets::Values(rows.copied().collect())
                }
                Targets::Classes(classes) => Targets::Classes(of(chosen, classes)),
                Targets::Chosen { columns, values } => {
                    Targets::Chosen { columns: of(chosen, columns), values: of(chosen, values) }
                }
            },
        };
        let scales = if self.scales.is_empty() { Vec::new() } else { of(chosen, &self.scales) };
        Self { batch, scales }
    }

    /// The score of a model.
    pub fn score(
        &self,
        trainer: &mut Trainer,
        loss: Loss,
        weights: &[f32],
    ) -> Result<OnlineScore, ModelError> {
        let (Targets::Values(targets), false) = (&self.batch.targets, self.scales.is_empty()) else {
            let found = trainer.evaluate(weights, &self.batch, loss)?;
            let accuracy = found.accuracy.map_or(f64::NAN, f64::from);
            return Ok(OnlineScore { loss: found.loss.into(), accuracy, ..OnlineScore::UNKNOWN });
        };
        let (outputs, _) = trainer.forward(weights, &self.batch.inputs, &self.batch.shape)?;
        let error = |((output, target), (mean, deviation)): ((&f32, &f32), &(f64, f64))| {
            let measured = mean + deviation * f64::from(*target);
            let counts = measured.abs() >= MEASURED_MIN * mean.abs();
            counts.then(|| (deviation * f64::from(output - target) / measured).abs())
        };
        let errors: Vec<f64> = outputs.iter().zip(targets).zip(&self.scales).filter_map(error).collect();
        let squares = outputs.iter().zip(targets).map(|(output, target)| f64::from(output - target).powi(2));
        let count = targets.len() as f64;
        Ok(OnlineScore {
            loss: squares.sum::<f64>() / count,
            mape: errors.iter().sum::<f64>() / errors.len() as f64,
            ..OnlineScore::UNKNOWN
        })
    }
}

/// The chosen ones of all, in the order of the choice.
fn of<T: Copy>(chosen: &[usize], all: &[T]) -> Vec<T> {
    chosen.iter().map(|at| all[*at]).collect()
}
