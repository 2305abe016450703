//! Loss and gradient of a model on a batch.

use std::sync::Arc;

use burn_autodiff::Autodiff;
use burn_backend::ops::FloatTensorOps;
use burn_backend::tensor::{Device, FloatTensor};
use burn_backend::{AutodiffBackend, Backend};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::engine::Engine;
use crate::error::{ModelError, Result};
use crate::kernel::execute::{execute, tensor, values};
use crate::loss::{Loss, Targets, output_loss};
use crate::model::Model;
use crate::plan::ExecutionPlan;

#[cfg(feature = "flex")]
use crate::backend::Flex as SelectedBackend;
#[cfg(all(feature = "ndarray", not(feature = "flex")))]
use crate::backend::NdArray as SelectedBackend;
#[cfg(not(any(feature = "flex", feature = "ndarray")))]
compile_error!("choose a backend: feature `flex` (default) or `ndarray`");

/// The backend that this build trains on.
pub type DefaultBackend = SelectedBackend;

/// Samples with their targets.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// All inputs, in row-major order.
    pub inputs: Vec<f32>,
    /// Their shape; the first dimension counts the samples.
    pub shape: Vec<usize>,
    /// The targets the output is compared with.
    pub targets: Targets,
}

/// A loss and an update.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradient {
    /// Mean loss.
    pub loss: f32,
    /// One value for each parameter, in canonical order: the gradient, or θ_old − θ_new after local epochs.
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

/// Stochastic gradient descent on one node.
#[derive(Debug, Clone, PartialEq)]
pub struct Sgd {
    /// Passes over the batch.
    pub epochs: u32,
    /// Step size.
    pub learning_rate: f32,
    /// Share of the previous step that is added, as in PyTorch: v ← momentum·v + gradient; θ ← θ − learning_rate·v.
    pub momentum: f32,
    /// Samples in one step, taken in order; the whole batch if none is given.
    pub batch_size: Option<usize>,
}

/// Plans cached, one for each of the latest input shapes.
const PLANS_MAX: usize = 8;

/// Losses and gradients of a model, with a cache of plans by input shape.
pub struct Trainer<B: Engine = DefaultBackend> {
    model: Model,
    device: Device<B>,
    plans: Vec<Arc<PreparedPlan<B>>>,
    dropout: ChaCha8Rng,
}

struct PreparedPlan<B: Backend> {
    shape: Vec<usize>,
    plan: ExecutionPlan,
    constants: Vec<FloatTensor<B>>,
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

    /// Mean loss over the batch and its gradient at these weights.
    pub fn gradient(&mut self, weights: &[f32], batch: &Batch, loss: Loss) -> Result<Gradient> {
        let prepared = self.prepare(weights, &batch.inputs, &batch.shape)?;
        let parameters: Vec<_> = self
            .parameters(weights)
            .map(|tensor| Autodiff::<B>::float_set_require_grad(Autodiff::<B>::from_inner(tensor), true))
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

        let mut gradient = Vec::with_capacity(weights.len());
        for (leaf, parameter) in parameters.iter().zip(self.model.parameters()) {
            match Autodiff::<B>::grad_remove(leaf, &mut gradients) {
                Some(found) => gradient.extend(values::<B>(found)),
                None => gradient.resize(gradient.len() + parameter.len(), 0.0),
            }
        }
        Ok(Gradient { loss: measured.loss, gradient })
    }

    /// θ_old − θ_new after some epochs of gradient descent; the loss is the mean over the last epoch.
    pub fn local_epochs(
        &mut self,
        weights: &[f32],
        batch: &Batch,
        loss: Loss,
        sgd: &Sgd,
    ) -> Result<Gradient> {
        let done = self.local_epochs_until(weights, batch, loss, sgd, || false)?;
        Ok(done.expect("training is never cancelled"))
    }

    /// As [`local_epochs`](Self::local_epochs), without a result if `is_cancelled` before a step.
    pub fn local_epochs_until(
        &mut self,
        weights: &[f32],
        batch: &Batch,
        loss: Loss,
        sgd: &Sgd,
        mut is_cancelled: impl FnMut() -> bool,
    ) -> Result<Option<Gradient>> {
        let setting = |name, value, why| Err(ModelError::Setting { name, value, why });
        let samples = batch.shape.first().copied().unwrap_or(0);
        let size = sgd.batch_size.unwrap_or(samples);
        if sgd.epochs == 0 {
            return setting("epochs", 0.0, "at least one");
        }
        if size == 0 {
            return setting("batch_size", 0.0, "at least one sample");
        }
        if !sgd.learning_rate.is_finite() || sgd.learning_rate <= 0.0 {
            return setting("learning_rate", sgd.learning_rate.into(), "positive and finite");
        }
        if !(0.0..1.0).contains(&sgd.momentum) {
            return setting("momentum", sgd.momentum.into(), "at least 0, below 1");
        }
        let pieces = batch.split(size)?;
        let mut now = weights.to_vec();
        let mut velocity = vec![0.0f32; weights.len()];
        let mut mean = 0.0;
        for _ in 0..sgd.epochs {
            mean = 0.0;
            for piece in &pieces {
                if is_cancelled() {
                    return Ok(None);
                }
                let step = self.gradient(&now, piece, loss)?;
                mean += f64::from(step.loss) * piece.shape[0] as f64 / samples as f64;
                for ((w, v), g) in now.iter_mut().zip(&mut velocity).zip(&step.gradient) {
                    *v = sgd.momentum * *v + g;
                    *w -= sgd.learning_rate * *v;
                }
            }
        }
        let gradient = weights.iter().zip(&now).map(|(old, new)| old - new).collect();
        Ok(Some(Gradient { loss: mean as f32, gradient }))
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
        let parameters: Vec<_> = self.parameters(weights).collect();
        let inputs = self.inputs(&prepared.plan, inputs);
        let mut outputs =
            execute::<B>(&prepared.plan, inputs, &parameters, &prepared.constants, None, B::run);
        Ok((values::<B>(outputs.swap_remove(0)), prepared.plan.outputs[0].1.clone()))
    }

    fn prepare(&mut self, weights: &[f32], inputs: &[f32], shape: &[usize]) -> Result<Arc<PreparedPlan<B>>> {
        self.model.inner.check_weights(weights)?;
        let shapes = self.model.inner.input_shapes(shape, inputs.len())?;
        if let Some(found) = self.plans.iter().find(|prepared| prepared.shape == shape) {
            return Ok(found.clone());
        }
        let plan = self.model.inner.plan(&shapes, 1)?;
        let constants =
            plan.constants.iter().map(|c| tensor::<B>(c.data.to_vec(), &c.shape, &self.device)).collect();
        let prepared = Arc::new(PreparedPlan { shape: shape.to_vec(), plan, constants });
        if self.plans.len() == PLANS_MAX {
            self.plans.remove(0);
        }
        self.plans.push(prepared.clone());
        Ok(prepared)
    }

    fn parameters(&self, weights: &[f32]) -> impl Iterator<Item = FloatTensor<B>> {
        self.model.parameters().iter().map(|parameter| {
            let values = &weights[parameter.offset..parameter.offset + parameter.len()];
            tensor::<B>(values.to_vec(), &parameter.shape, &self.device)
        })
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

impl Batch {
    /// Number of samples.
    pub fn samples(&self) -> usize {
        self.shape.first().copied().unwrap_or(0)
    }

    /// Pieces of at most `size` samples, in order.
    fn split(&self, size: usize) -> Result<Vec<Batch>> {
        let samples = self.samples();
        let fail = |why: &str| {
            Err(ModelError::Targets {
                output: self.shape.clone(),
                why: format!("{why} cannot be split by sample"),
            })
        };
        if samples == 0 || !self.inputs.len().is_multiple_of(samples) {
            return fail("inputs");
        }
        if !self.targets.len().is_multiple_of(samples) {
            return fail("targets");
        }
        if size >= samples {
            return Ok(vec![self.clone()]);
        }
        let width = self.inputs.len() / samples;
        let each = self.targets.len() / samples;
        let piece = |start: usize| {
            let end = (start + size).min(samples);
            let mut shape = self.shape.clone();
            shape[0] = end - start;
            let range = start * each..end * each;
            Batch {
                inputs: self.inputs[start * width..end * width].to_vec(),
                shape,
                targets: match &self.targets {
                    Targets::Values(values) => Targets::Values(values[range].to_vec()),
                    Targets::Classes(classes) => Targets::Classes(classes[range].to_vec()),
                    Targets::Chosen { columns, values } => Targets::Chosen {
                        columns: columns[range.clone()].to_vec(),
                        values: values.get(range).unwrap_or_default().to_vec(),
                    },
                },
            }
        };
        Ok((0..samples).step_by(size).map(piece).collect())
    }
}
