//! The shipped network: losses, gradients and outputs, by trainers that threads share.

use std::sync::{Arc, Mutex, PoisonError};

use evenhand_models::{
    Batch, Gradient, LoadOptions, Loss, Model, ModelError, Sgd, Targets, Trainer, shipped,
};
use evenhand_node::forecast::{INPUTS, LeadRows};

/// A model with trainers that no thread uses at the moment.
pub(super) struct Network {
    pub(super) model: Model,
    /// θ₀.
    pub(super) initial: Arc<[f32]>,
    /// The personal part in the beginning.
    pub(super) initial_personal: Vec<f32>,
    idle: Mutex<Vec<Trainer>>,
}

impl Network {
    /// The shipped model for loads.
    pub(super) fn shipped() -> Result<Self, ModelError> {
        let model = Model::load(shipped::LOAD_QUANTILES, &LoadOptions::default())?;
        let (initial, initial_personal) = (model.initial_weights().into(), model.initial_personal());
        Ok(Self { initial, initial_personal, model, idle: Mutex::default() })
    }

    /// Outputs for rows of inputs.
    pub(super) fn outputs(
        &self,
        weights: &[f32],
        personal: &[f32],
        inputs: &[f32],
    ) -> Result<Vec<f32>, ModelError> {
        let shape = [inputs.len() / INPUTS, INPUTS];
        self.with_trainer(personal, |trainer| Ok(trainer.forward(weights, inputs, &shape)?.0))
    }

    /// Pinball loss and its gradient.
    pub(super) fn gradient(&self, weights: &[f32], rows: LeadRows) -> Result<Gradient, ModelError> {
        self.gradient_of(weights, rows, Loss::Pinball)
    }

    /// The reference gradient of rows, as a node measures it.
    pub(super) fn reference_gradient(&self, weights: &[f32], rows: LeadRows) -> Result<Gradient, ModelError> {
        self.gradient_of(weights, rows.for_reference(), Loss::Mse)
    }

    fn gradient_of(&self, weights: &[f32], rows: LeadRows, loss: Loss) -> Result<Gradient, ModelError> {
        let batch = batch(rows);
        self.with_trainer(&self.initial_personal, |trainer| trainer.gradient(weights, &batch, loss))
    }

    /// θ_old − θ_new after local steps, and the loss of the last one.
    pub(super) fn epochs(&self, weights: &[f32], rows: LeadRows, sgd: &Sgd) -> Result<Gradient, ModelError> {
        let batch = batch(rows);
        self.with_trainer(&self.initial_personal, |trainer| {
            trainer.local_epochs(weights, &batch, Loss::Pinball, sgd)
        })
    }

    /// Old less new personal part after local steps.
    pub(super) fn personal_epochs(
        &self,
        weights: &[f32],
        personal: &[f32],
        rows: LeadRows,
        sgd: &Sgd,
    ) -> Result<Gradient, ModelError> {
        let batch = batch(rows);
        self.with_trainer(personal, |trainer| trainer.personal_epochs(weights, &batch, Loss::Pinball, sgd))
    }

    fn with_trainer<T>(
        &self,
        personal: &[f32],
        work: impl FnOnce(&mut Trainer) -> Result<T, ModelError>,
    ) -> Result<T, ModelError> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = idle().pop();
        let mut trainer = taken.unwrap_or_else(|| Trainer::new(&self.model));
        trainer.set_personal(personal)?;
        let done = work(&mut trainer);
        idle().push(trainer);
        done
    }
}

fn batch(rows: LeadRows) -> Batch {
    Batch { shape: vec![rows.len(), INPUTS], inputs: rows.inputs, targets: Targets::Values(rows.targets) }
}
