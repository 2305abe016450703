//! Carrying out what the core wants computed.

use std::borrow::Cow;

use evenhand_models::{Batch, Loss, Model, ModelError, Predictor, Sgd, Targets, Trainer};
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{LossKind, UpdateKind};

use crate::core::{Card, Job, Prediction, Trained};

impl Job {
    /// Trains: the same job and model give the same result on every thread. Nothing, if it is `over` before it ends.
    pub fn run(&self, model: &Model, over: impl FnMut() -> bool) -> Result<Option<Trained>, ModelError> {
        let mut trainer: Trainer = Trainer::on(model, self.seed);
        let loss = loss(self.loss);
        let online_loss = match &self.own {
            Some(own) => Some(trainer.evaluate(own, &last(&self.batch, self.fresh), loss)?.loss),
            None => None,
        };
        match self.kind {
            // What momentum and Adam make of the gradient needs the node's memory.
            UpdateKind::Gradient | UpdateKind::Momentum { .. } | UpdateKind::Adam => {
                let update = trainer.gradient(&self.weights, &self.batch, loss)?;
                Ok(Some(Trained { loss: update.loss, online_loss, vector: update.gradient }))
            }
            UpdateKind::Epochs { epochs, learning_rate, momentum } => {
                let before = trainer.evaluate(&self.weights, &self.batch, loss)?.loss;
                let sgd = Sgd { epochs, learning_rate, momentum, batch_size: None };
                let update = trainer.local_epochs_until(&self.weights, &self.batch, loss, &sgd, over)?;
                Ok(update.map(|update| Trained { loss: before, online_loss, vector: update.gradient }))
            }
        }
    }
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

impl Prediction {
    /// Forecasts: the model's first output.
    pub fn run(&self, model: &Model) -> Result<f32, ModelError> {
        let outputs = Predictor::new(model, &self.weights)?.predict(&self.query.inputs, &self.query.shape)?;
        Ok(outputs.first().copied().unwrap_or(f32::NAN))
    }
}

impl Card {
    /// What the core must know of `model`.
    pub fn of(model: &Model) -> Self {
        Card {
            digest: Digest(model.digest()),
            parameters: model.dim(),
            input_shape: model.input_shape().to_vec(),
        }
    }
}

fn loss(kind: LossKind) -> Loss {
    match kind {
        LossKind::Mse => Loss::Mse,
        LossKind::CrossEntropy => Loss::CrossEntropy,
        LossKind::Nll => Loss::Nll,
        LossKind::Huber => Loss::Huber,
    }
}
