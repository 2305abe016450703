//! Training on the data of a coalition, and its score on everybody's clean, held-out samples.

use std::sync::Arc;

use evenhand_models::{Batch, LoadOptions, Loss, Model, Sgd, Targets, Trainer};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::WorthError;
use super::judges::{Judgement, Judges};
use super::node_set::NodeSet;
use super::settings::WorthSettings;
use crate::data::SamplePool;
use crate::data::random::{RandomPurpose, generator};
use crate::experiment::ExperimentError;
use crate::experiment::trial::{initial_weights, loss};
use crate::scenario::{SampleStream, TrainedRow};
use crate::sim::SimulationError;

/// Share of the previous step that each step of training keeps.
const MOMENTUM: f32 = 0.9;
/// A model that is lost is no worse than this many times the loss of the initial one.
const LOSS_RATIO_MAX: f64 = 10.0;

/// The score of a coalition's model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CoalitionScore {
    /// Its mean loss.
    pub loss: f64,
    /// Its accuracy, or its mean absolute percentage error; none where it is no number.
    pub score: Option<f64>,
}

/// The score of a coalition's model, and its loss on each judge's own samples.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedScore {
    /// By everybody's samples.
    pub found: CoalitionScore,
    /// The losses, in the order of [`RetrainingGame::judges`]; empty where samples are anybody's.
    pub losses: Vec<f64>,
}

/// The game whose players are nodes: U(S) = −loss of the model that was trained on the data of S.
///
/// Training is pooled stochastic gradient descent with momentum: the same initial model and the same number of steps for
/// every coalition, on the samples of its members, pass after pass in an order that two coalitions share as far as they
/// share samples. The empty coalition has the initial model.
pub struct RetrainingGame {
    settings: WorthSettings,
    model: Model,
    loss: Loss,
    initial: Vec<f32>,
    /// The scores of the initial model.
    initial_scores: Judgement,
    /// By node: what it measured in the rounds that are trained on.
    rows: Vec<Vec<TrainedRow>>,
    shape: Vec<usize>,
    judges: Judges,
    /// ζ by node.
    pub zetas: Vec<f64>,
}

impl RetrainingGame {
    /// The game of a scenario on its pool of samples.
    pub fn new(settings: &WorthSettings, pool: &Arc<SamplePool>) -> Result<Self, ExperimentError> {
        let stream = SampleStream::new(Arc::clone(pool), &settings.scenario)?;
        let (_, onnx) = settings.scenario.dataset.model(settings.scenario.as_published);
        let model = Model::load(onnx, &LoadOptions::default()).map_err(SimulationError::Model)?;
        let last = settings.trained_rounds();
        let held_out = stream.held_out(last + 1);
        if held_out.clean.batch.samples() == 0 {
            return Err(WorthError::NothingHeldOut { dataset: settings.scenario.dataset }.into());
        }
        let mut rng = ChaCha8Rng::seed_from_u64(settings.scenario.seed);
        let judges = Judges::new(held_out, settings.held_out, &mut rng);
        let initial = initial_weights(settings.scenario.dataset, &model, settings.scenario.seed);
        let loss = loss(settings.scenario.dataset);
        let initial_scores =
            judges.judge(&mut Trainer::new(&model), loss, &initial).map_err(SimulationError::Model)?;
        Ok(Self {
            initial,
            initial_scores,
            model,
            loss,
            rows: (0..settings.scenario.nodes).map(|node| stream.trained_rows(node, last)).collect(),
            shape: stream.shape().to_vec(),
            judges,
            zetas: stream.nominal_zetas().to_vec(),
            settings: settings.clone(),
        })
    }

    /// A trainer of its model.
    pub fn trainer(&self) -> Trainer {
        Trainer::new(&self.model)
    }

    /// The nodes that judge models by samples of their own, and the share of the samples that each has.
    pub fn judges(&self) -> Vec<(usize, f64)> {
        self.judges.shares()
    }

    /// Trains on the data of a coalition and scores the model.
    pub fn score(
        &self,
        trainer: &mut Trainer,
        members: NodeSet,
        learning_rate: f64,
    ) -> Result<JudgedScore, SimulationError> {
        let samples = self.chosen(members);
        let trained;
        let Judgement { all: found, losses } = if samples.is_empty() {
            &self.initial_scores
        } else {
            let sgd = Sgd {
                epochs: 1,
                learning_rate: learning_rate as f32,
                momentum: MOMENTUM,
                batch_size: Some(self.settings.step_samples),
            };
            let moved = trainer.local_epochs(&self.initial, &self.batch(&samples), self.loss, &sgd)?;
            let weights: Vec<f32> =
                self.initial.iter().zip(&moved.gradient).map(|(old, step)| old - step).collect();
            trained = self.judges.judge(trainer, self.loss, &weights)?;
            &trained
        };
        let within = |loss: f64, initial: f64| {
            let most = LOSS_RATIO_MAX * initial;
            if loss.is_finite() { loss.min(most) } else { most }
        };
        let score = if self.settings.scenario.dataset.has_classes() { found.accuracy } else { found.mape };
        let initial = &self.initial_scores;
        Ok(JudgedScore {
            found: CoalitionScore {
                loss: within(found.loss, initial.all.loss),
                score: Some(score).filter(|score| score.is_finite()),
            },
            losses: losses
                .iter()
                .zip(&initial.losses)
                .map(|(loss, initial)| within(*loss, *initial))
                .collect(),
        })
    }

    /// The samples of a training, as nodes and positions in their rows: all of the members' in a random order, then all of
    /// them in another, until there are enough. A sample has its place in the order whatever the coalition is.
    fn chosen(&self, members: NodeSet) -> Vec<(usize, usize)> {
        let wanted = self.settings.steps * self.settings.step_samples;
        let mut chosen = Vec::with_capacity(wanted);
        for pass in 0.. {
            let mut keyed: Vec<(u64, usize, usize)> = Vec::new();
            for node in members.iter().take_while(|node| *node < self.rows.len()) {
                let mut keys = generator(self.settings.scenario.seed, RandomPurpose::Retraining, node, pass);
                keyed.extend((0..self.rows[node].len()).map(|row| (keys.random(), node, row)));
            }
            if keyed.is_empty() {
                return chosen;
            }
            keyed.sort_unstable();
            let missing = wanted - chosen.len();
            chosen.extend(keyed.into_iter().take(missing).map(|(_, node, row)| (node, row)));
            if chosen.len() == wanted {
                return chosen;
            }
        }
        chosen
    }

    fn batch(&self, samples: &[(usize, usize)]) -> Batch {
        let rows = || samples.iter().map(|(node, row)| &self.rows[*node][*row]);
        let inputs = rows().flat_map(|row| &row.inputs).copied().collect();
        let targets = if self.settings.scenario.dataset.has_classes() {
            Targets::Classes(rows().filter_map(|row| row.class).collect())
        } else {
            Targets::Values(rows().flat_map(|row| &row.values).copied().collect())
        };
        let shape = std::iter::once(samples.len()).chain(self.shape.iter().copied()).collect();
        Batch { inputs, shape, targets }
    }
}
