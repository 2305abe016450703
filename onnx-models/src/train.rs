//! Loss and gradient of a model on a batch.

use std::sync::Arc;

use burn_autodiff::Autodiff;
use burn_backend::AutodiffBackend;
use burn_backend::ops::FloatTensorOps;
use burn_backend::tensor::{Device, FloatTensor};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::batch::Batch;
use crate::engine::Engine;
use crate::error::Result;
use crate::kernel::execute::{PreparedPlan, execute, tensor, values};
use crate::loss::{Loss, output_loss};
use crate::model::Model;
use crate::personal::ModelPart;
use crate::plan::ExecutionPlan;

#[cfg(feature = "flex")]
use crate::backend::Flex as SelectedBackend;
#[cfg(all(feature = "ndarray", not(feature = "flex")))]
use crate::backend::NdArray as SelectedBackend;
#[cfg(not(any(feature = "flex", feature = "ndarray")))]
compile_error!("choose a backend: feature `flex` (default) or `ndarray`");

/// The backend that this build trains on.
pub type DefaultBackend = SelectedBackend;

/// A loss and an update.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradient {
    /// Mean loss.
    pub loss: f32,
    /// One value for each parameter, shared or personal, in canonical order: the gradient, or θ_old − θ_new after epochs.
    pub gradient: Vec<f32>,
}

/// Loss and accuracy of a model on a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchEvaluation {
    /// Mean loss.
    pub loss: f32,
    /// Share of the samples whose largest output is the true class; none without classes.
    pub accuracy: Option<f32>,
}

/// Plans cached, one for each of the latest input shapes.
const PLANS_MAX: usize = 8;

/// Losses and gradients of a model, with a cache of plans by input shape.
///
/// Weights and gradients are those of the shared parameters, while the personal ones (see [`PERSONAL`](crate::PERSONAL))
/// are held at the file's values, or at those that were set last; and the other way round in
/// [`personal_gradient`](Self::personal_gradient) and [`personal_epochs`](Self::personal_epochs).
///
/// ```
/// use evenhand_models::{Batch, LoadOptions, Loss, Model, Sgd, Targets, Trainer, shipped};
///
/// let model = Model::load(shipped::LOAD_QUANTILES, &LoadOptions::default())?;
/// let (weights, mut personal) = (model.initial_weights(), model.initial_personal());
/// let batch = Batch { inputs: vec![0.5; 41], shape: vec![1, 41], targets: Targets::Values(vec![0.1, 0.2, 0.4]) };
/// let mut trainer = Trainer::new(&model);
/// assert_eq!(trainer.gradient(&weights, &batch, Loss::Pinball)?.gradient.len(), model.dim());
///
/// let sgd = Sgd { epochs: 5, learning_rate: 0.01, momentum: 0.0, batch_size: None };
/// let step = trainer.personal_epochs(&weights, &batch, Loss::Pinball, &sgd)?.gradient;
/// personal.iter_mut().zip(&step).for_each(|(weight, step)| *weight -= step);
/// let before = trainer.evaluate(&weights, &batch, Loss::Pinball)?.loss;
/// trainer.set_personal(&personal)?;
/// assert!(trainer.evaluate(&weights, &batch, Loss::Pinball)?.loss < before);
/// # Ok::<(), evenhand_models::ModelError>(())
/// ```
pub struct Trainer<B: Engine = DefaultBackend> {
    model: Model,
    pub(crate) personal: Arc<[f32]>,
    device: Device<B>,
    plans: Vec<Arc<PreparedPlan<B>>>,
    dropout: ChaCha8Rng,
}

impl Trainer<DefaultBackend> {
    /// A trainer on this build's backend.
    pub fn new(model: &Model) -> Self {
        Trainer::on(model, 0)
    }
}

impl<B: Engine> Trainer<B> {
    /// A trainer on a given backend; the seed is for dropout masks.
    pub fn on(model: &Model, seed: u64) -> Self {
        Trainer {
            model: model.clone(),
            personal: model.initial_personal().into(),
            device: Device::<B>::default(),
            plans: vec![],
            dropout: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    /// Draws dropout masks from this seed from now on, as a trainer made with it would.
    pub fn reseed(&mut self, seed: u64) {
        self.dropout = ChaCha8Rng::seed_from_u64(seed);
    }

    /// The model being trained.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Sets the personal weights that all later calls start from; after an error the previous ones stay.
    pub fn set_personal(&mut self, personal: &[f32]) -> Result<()> {
        self.model.inner.check_personal(personal)?;
        self.personal = personal.into();
        Ok(())
    }

    /// Mean loss over the batch and its gradient at these weights, personal weights held fixed.
    pub fn gradient(&mut self, weights: &[f32], batch: &Batch, loss: Loss) -> Result<Gradient> {
        let personal = Arc::clone(&self.personal);
        self.gradient_of(ModelPart::Shared, weights, &personal, batch, loss)
    }

    /// Mean loss over the batch and its gradient in the personal weights, these shared ones held fixed.
    pub fn personal_gradient(&mut self, weights: &[f32], batch: &Batch, loss: Loss) -> Result<Gradient> {
        let personal = Arc::clone(&self.personal);
        self.gradient_of(ModelPart::Personal, weights, &personal, batch, loss)
    }

    pub(crate) fn gradient_of(
        &mut self,
        part: ModelPart,
        weights: &[f32],
        personal: &[f32],
        batch: &Batch,
        loss: Loss,
    ) -> Result<Gradient> {
        let prepared = self.prepare(weights, &batch.inputs, &batch.shape)?;
        let trained = self.model.inner.part(part);
        if trained.parameters.is_empty() {
            let loss = self.evaluate(weights, batch, loss)?.loss;
            return Ok(Gradient { loss, gradient: vec![] });
        }
        let first = match part {
            ModelPart::Shared => 0,
            ModelPart::Personal => self.model.parameters().len(),
        };
        let range = first..first + trained.parameters.len();
        let parameters: Vec<_> = self
            .parameters(weights, personal)
            .enumerate()
            .map(|(index, tensor)| {
                let tensor = Autodiff::<B>::from_inner(tensor);
                if range.contains(&index) {
                    Autodiff::<B>::float_set_require_grad(tensor, true)
                } else {
                    tensor
                }
            })
            .collect();
        let inputs =
            self.inputs(&prepared.plan, &batch.inputs).into_iter().map(Autodiff::<B>::from_inner).collect();
        let constants: Vec<_> = prepared.constants.iter().cloned().map(Autodiff::<B>::from_inner).collect();
        let mut outputs = execute::<Autodiff<B>>(
            &prepared.plan,
            inputs,
            &parameters,
            &constants,
            Some(&mut self.dropout),
            B::track,
        );
        let output = outputs.swap_remove(0);

        let shape = &prepared.plan.outputs[0].1;
        let found = values::<B>(Autodiff::<B>::inner(output.clone()));
        let measured = output_loss(loss, self.model.quantiles(), &found, shape, &batch.targets)?;
        // The sum of output ⊙ ∂loss/∂output has the loss's gradient, whatever the loss.
        let slopes = Autodiff::<B>::from_inner(tensor::<B>(measured.gradient, shape, &self.device));
        let root = Autodiff::<B>::float_sum(Autodiff::<B>::float_mul(output, slopes));
        let mut gradients = Autodiff::<B>::backward(root);

        let trained = self.model.inner.part(part);
        let mut gradient = Vec::with_capacity(trained.initial.len());
        for (leaf, parameter) in parameters[range].iter().zip(&trained.parameters) {
            match Autodiff::<B>::grad_remove(leaf, &mut gradients) {
                Some(found) => gradient.extend(values::<B>(found)),
                None => gradient.resize(gradient.len() + parameter.len(), 0.0),
            }
        }
        Ok(Gradient { loss: measured.loss, gradient })
    }

    /// Loss and accuracy at these weights, without a gradient.
    pub fn evaluate(&mut self, weights: &[f32], batch: &Batch, loss: Loss) -> Result<BatchEvaluation> {
        let (output, shape) = self.forward(weights, &batch.inputs, &batch.shape)?;
        let measured = output_loss(loss, self.model.quantiles(), &output, &shape, &batch.targets)?;
        Ok(BatchEvaluation { loss: measured.loss, accuracy: measured.accuracy })
    }

    /// The output at these weights and its shape, computed as in training but without dropout.
    pub fn forward(
        &mut self,
        weights: &[f32],
        inputs: &[f32],
        shape: &[usize],
    ) -> Result<(Vec<f32>, Vec<usize>)> {
        let prepared = self.prepare(weights, inputs, shape)?;
        let parameters: Vec<_> = self.parameters(weights, &self.personal).collect();
        let inputs = self.inputs(&prepared.plan, inputs);
        let mut outputs =
            execute::<B>(&prepared.plan, inputs, &parameters, &prepared.constants, None, B::run);
        Ok((values::<B>(outputs.swap_remove(0)), prepared.plan.outputs[0].1.clone()))
    }

    fn prepare(&mut self, weights: &[f32], inputs: &[f32], shape: &[usize]) -> Result<Arc<PreparedPlan<B>>> {
        self.model.inner.check_weights(weights)?;
        let shapes = self.model.inner.input_shapes(shape, inputs.len())?;
        if let Some(found) = self.plans.iter().find(|prepared| prepared.plan.inputs[0].1 == shape) {
            return Ok(found.clone());
        }
        let plan = self.model.inner.plan(&shapes, 1)?;
        let prepared = Arc::new(PreparedPlan::new(plan, &self.device));
        if self.plans.len() == PLANS_MAX {
            self.plans.remove(0);
        }
        self.plans.push(prepared.clone());
        Ok(prepared)
    }

    /// The tensors of all parameters, in the order of the plan.
    fn parameters<'a>(
        &'a self,
        weights: &'a [f32],
        personal: &'a [f32],
    ) -> impl Iterator<Item = FloatTensor<B>> {
        let values = self.model.inner.bind(weights, personal);
        values.map(|(parameter, values)| tensor::<B>(values.to_vec(), &parameter.shape, &self.device))
    }

    /// The first input as given, the others zero: initial states.
    fn inputs(&self, plan: &ExecutionPlan, first: &[f32]) -> Vec<FloatTensor<B>> {
        let input = |(index, (_, shape)): (usize, &(usize, Vec<usize>))| match index {
            0 => tensor::<B>(first.to_vec(), shape, &self.device),
            _ => tensor::<B>(vec![0.0; shape.iter().product()], shape, &self.device),
        };
        plan.inputs.iter().enumerate().map(input).collect()
    }
}
