//! A model prepared for training and forecasting: planned once, weights swapped.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenhand_models::{Batch, Gradient, Loss, Model, ModelError, Predictor, Sgd, Targets, Trainer};
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{LossKind, UpdateKind};

use crate::core::{ModelInfo, PersonalJob, PredictedOutputs, Prediction, Trained, TrainingJob};
use crate::forecast::PERSONAL_TRAINING;
use crate::privacy::clip;

/// A model with the trainers and predictors that were planned for it. Clones share them.
///
/// Planning a graph costs far more than a round's arithmetic. A trainer or predictor is used by one thread at a time and
/// reused by the next, so that there are never more of them than threads that worked at the same time.
#[derive(Clone)]
pub struct PreparedModel(Arc<SharedModel>);

struct SharedModel {
    model: Model,
    initial: Arc<[f32]>,
    initial_personal: Arc<[f32]>,
    trainers: Idle<Trainer>,
    predictors: Idle<LoadedPredictor>,
    preparations: AtomicU64,
}

/// A predictor and the weights it was given last.
struct LoadedPredictor {
    weights: Arc<[f32]>,
    personal: Vec<f32>,
    predictor: Predictor,
}

impl PreparedModel {
    /// Prepares nothing yet.
    pub fn new(model: Model) -> Self {
        Self(Arc::new(SharedModel {
            initial: model.initial_weights().into(),
            initial_personal: model.initial_personal().into(),
            model,
            trainers: Idle::default(),
            predictors: Idle::default(),
            preparations: AtomicU64::new(0),
        }))
    }

    /// Trainers and predictors prepared so far: one of each, while one thread trains and one forecasts.
    pub fn preparations(&self) -> u64 {
        self.0.preparations.load(Ordering::Relaxed)
    }

    /// Properties of the model that the core decides by.
    pub fn info(&self) -> ModelInfo {
        let model = &self.0.model;
        ModelInfo {
            digest: Digest(model.digest()),
            parameters: model.dim(),
            initial: Arc::clone(&self.0.initial),
            personal: Arc::clone(&self.0.initial_personal),
            input_shape: model.input_shape().to_vec(),
        }
    }

    /// The personal weights that a node begins with; empty for a model without personal parameters.
    pub fn initial_personal(&self) -> &[f32] {
        &self.0.initial_personal
    }

    /// The update of a training job: the same on every thread. None if it is `over` before the training ends.
    ///
    /// Personal weights are held as the file has them, so an update neither has them nor depends on those of a node.
    pub fn train(
        &self,
        job: &TrainingJob,
        over: impl FnMut() -> bool,
    ) -> Result<Option<Trained>, ModelError> {
        let mut trainer = self.trainer(&self.0.initial_personal)?;
        trainer.reseed(job.seed);
        let trained = train(&mut trainer, job, over);
        self.0.trainers.put(trainer);
        trained
    }

    /// The personal weights after some epochs on a node's own data, these shared weights held fixed.
    pub fn fit_personal(
        &self,
        weights: &[f32],
        personal: &[f32],
        batch: &Batch,
        kind: LossKind,
        sgd: &Sgd,
    ) -> Result<Vec<f32>, ModelError> {
        let mut trainer = self.trainer(personal)?;
        let step = trainer.personal_epochs(weights, batch, loss(kind), sgd);
        self.0.trainers.put(trainer);
        Ok(personal.iter().zip(step?.gradient).map(|(old, step)| old - step).collect())
    }

    /// The personal weights after a day's training.
    pub fn train_personal(&self, job: &PersonalJob) -> Result<Vec<f32>, ModelError> {
        let PersonalJob { weights, personal, batch, .. } = job;
        self.fit_personal(weights, personal, batch, LossKind::Pinball, &PERSONAL_TRAINING)
    }

    /// The outputs of the model for a prediction, one row after the other.
    pub fn predict(&self, prediction: &Prediction) -> Result<PredictedOutputs, ModelError> {
        let Prediction { weights, personal, query, .. } = prediction;
        let outputs = |personal: &[f32]| self.outputs(weights, personal, &query.inputs, &query.shape);
        Ok(PredictedOutputs {
            shared: outputs(&self.0.initial_personal)?,
            personal: personal.as_deref().map(outputs).transpose()?,
        })
    }

    /// All outputs of the model with these shared and personal weights, in row-major order.
    pub fn outputs(
        &self,
        weights: &Arc<[f32]>,
        personal: &[f32],
        inputs: &[f32],
        shape: &[usize],
    ) -> Result<Vec<f32>, ModelError> {
        let loaded =
            |idle: &LoadedPredictor| Arc::ptr_eq(&idle.weights, weights) && idle.personal == personal;
        let mut loaded = match self.0.predictors.take(loaded) {
            Some(idle) => idle,
            None => {
                self.count("predictor");
                let predictor = Predictor::new(&self.0.model, weights)?;
                let personal = self.0.initial_personal.to_vec();
                LoadedPredictor { weights: Arc::clone(weights), personal, predictor }
            }
        };
        let outputs = loaded.predict(weights, personal, inputs, shape);
        self.0.predictors.put(loaded);
        outputs
    }

    /// An idle or new trainer with these personal weights.
    fn trainer(&self, personal: &[f32]) -> Result<Trainer, ModelError> {
        let mut trainer = self.0.trainers.take(|_| true).unwrap_or_else(|| {
            self.count("trainer");
            Trainer::new(&self.0.model)
        });
        match trainer.set_personal(personal) {
            Ok(()) => Ok(trainer),
            Err(error) => {
                self.0.trainers.put(trainer);
                Err(error)
            }
        }
    }

    fn count(&self, part: &str) {
        self.0.preparations.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(graph = %Digest(self.0.model.digest()), part, "preparing the model");
    }
}

impl fmt::Debug for PreparedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedModel").field("model", &self.0.model).finish_non_exhaustive()
    }
}

impl LoadedPredictor {
    fn predict(
        &mut self,
        weights: &Arc<[f32]>,
        personal: &[f32],
        inputs: &[f32],
        shape: &[usize],
    ) -> Result<Vec<f32>, ModelError> {
        if !Arc::ptr_eq(&self.weights, weights) {
            self.predictor.set_weights(weights)?;
            self.weights = Arc::clone(weights);
        }
        if self.personal != personal {
            self.predictor.set_personal(personal)?;
            self.personal = personal.to_vec();
        }
        self.predictor.predict(inputs, shape)
    }
}

/// Values that no thread uses at the moment. What a thread panicked with is not put back.
struct Idle<T>(Mutex<Vec<T>>);

impl<T> Default for Idle<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Idle<T> {
    /// An idle value, `preferred` ones first.
    fn take(&self, preferred: impl Fn(&T) -> bool) -> Option<T> {
        let mut idle = self.lock();
        let at = idle.iter().position(preferred).or(idle.len().checked_sub(1))?;
        Some(idle.swap_remove(at))
    }

    fn put(&self, value: T) {
        self.lock().push(value);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn train(
    trainer: &mut Trainer,
    job: &TrainingJob,
    over: impl FnMut() -> bool,
) -> Result<Option<Trained>, ModelError> {
    let loss = loss(job.loss);
    let online_loss = match &job.previous {
        Some(previous) => Some(trainer.evaluate(previous, &last(&job.batch, job.fresh), loss)?.loss),
        None => None,
    };
    match job.kind {
        // Momentum and Adam continue from the node's optimiser state, which is not the trainer's.
        UpdateKind::Gradient | UpdateKind::Momentum { .. } | UpdateKind::Adam => {
            let update = match job.row_clip {
                Some(length) => clipped_rows(trainer, job, loss, length)?,
                None => trainer.gradient(&job.weights, &job.batch, loss)?,
            };
            Ok(Some(Trained { loss: update.loss, online_loss, vector: update.gradient }))
        }
        UpdateKind::Epochs { epochs, learning_rate, momentum } => {
            let before = trainer.evaluate(&job.weights, &job.batch, loss)?.loss;
            let sgd = Sgd { epochs, learning_rate, momentum, batch_size: None };
            let update = trainer.local_epochs_until(&job.weights, &job.batch, loss, &sgd, over)?;
            Ok(update.map(|update| Trained { loss: before, online_loss, vector: update.gradient }))
        }
    }
}

/// The mean over rows of gradients that are each clipped to `length`: one pass a row.
fn clipped_rows(
    trainer: &mut Trainer,
    job: &TrainingJob,
    loss: Loss,
    length: f32,
) -> Result<Gradient, ModelError> {
    let rows = job.batch.split(1)?;
    let mut mean = Gradient { loss: 0.0, gradient: vec![0.0; job.weights.len()] };
    for row in &rows {
        let mut of_row = trainer.gradient(&job.weights, row, loss)?;
        clip(&mut of_row.gradient, length.into());
        mean.loss += of_row.loss / rows.len() as f32;
        for (sum, value) in mean.gradient.iter_mut().zip(&of_row.gradient) {
            *sum += value / rows.len() as f32;
        }
    }
    Ok(mean)
}

/// The last `count` samples of a batch.
fn last(batch: &Batch, count: usize) -> Cow<'_, Batch> {
    let samples = batch.samples();
    if count >= samples {
        return Cow::Borrowed(batch);
    }
    let first = samples - count;
    let targets = match &batch.targets {
        Targets::Values(values) => Targets::Values(values[first * values.len() / samples..].to_vec()),
        Targets::Classes(classes) => Targets::Classes(classes[first..].to_vec()),
        Targets::Chosen { columns, values } => {
            Targets::Chosen { columns: columns[first..].to_vec(), values: values[first..].to_vec() }
        }
    };
    let inputs = batch.inputs[first * batch.inputs.len() / samples..].to_vec();
    let mut shape = batch.shape.clone();
    shape[0] = count;
    Cow::Owned(Batch { inputs, shape, targets })
}

fn loss(kind: LossKind) -> Loss {
    match kind {
        LossKind::Mse => Loss::Mse,
        LossKind::CrossEntropy => Loss::CrossEntropy,
        LossKind::Nll => Loss::Nll,
        LossKind::Huber => Loss::Huber,
        LossKind::Pinball => Loss::Pinball,
    }
}

#[cfg(test)]
mod tests;
