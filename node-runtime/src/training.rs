//! Carrying out what the core wants computed.

use evenhand_models::{Loss, Model, ModelError, Predictor, Sgd, Trainer};
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{LossKind, UpdateKind};

use crate::core::{Card, Job, Prediction, Trained};

impl Job {
    /// Trains: the same job and model give the same result on every thread.
    pub fn run(&self, model: &Model) -> Result<Trained, ModelError> {
        let mut trainer: Trainer = Trainer::on(model, self.seed);
        let loss = loss(self.loss);
        let online_loss = match &self.own {
            Some(own) => Some(trainer.evaluate(own, &self.batch, loss)?.loss),
            None => None,
        };
        match self.kind {
            UpdateKind::Gradient => {
                let update = trainer.gradient(&self.weights, &self.batch, loss)?;
                Ok(Trained { loss: update.loss, online_loss, vector: update.gradient })
            }
            UpdateKind::Epochs { epochs, learning_rate, momentum } => {
                let before = trainer.evaluate(&self.weights, &self.batch, loss)?.loss;
                let sgd = Sgd { epochs, learning_rate, momentum, batch_size: None };
                let update = trainer.local_epochs(&self.weights, &self.batch, loss, &sgd)?;
                Ok(Trained { loss: before, online_loss, vector: update.gradient })
            }
        }
    }
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
