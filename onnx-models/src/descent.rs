//! Epochs of gradient descent, in the shared or in the personal weights.

use std::sync::Arc;

use crate::batch::Batch;
use crate::engine::Engine;
use crate::error::{ModelError, Result};
use crate::loss::Loss;
use crate::personal::ModelPart;
use crate::train::{Gradient, Trainer};

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

impl<B: Engine> Trainer<B> {
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
        is_cancelled: impl FnMut() -> bool,
    ) -> Result<Option<Gradient>> {
        self.descend(ModelPart::Shared, weights, batch, loss, sgd, is_cancelled)
    }

    /// Old minus new personal weights after some epochs of gradient descent, these shared weights held fixed.
    pub fn personal_epochs(
        &mut self,
        weights: &[f32],
        batch: &Batch,
        loss: Loss,
        sgd: &Sgd,
    ) -> Result<Gradient> {
        let done = self.descend(ModelPart::Personal, weights, batch, loss, sgd, || false)?;
        Ok(done.expect("training is never cancelled"))
    }

    fn descend(
        &mut self,
        part: ModelPart,
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
        let personal = Arc::clone(&self.personal);
        let start = match part {
            ModelPart::Shared => weights,
            ModelPart::Personal => &personal,
        };
        let mut now = start.to_vec();
        let mut velocity = vec![0.0f32; start.len()];
        let mut mean = 0.0;
        for _ in 0..sgd.epochs {
            mean = 0.0;
            for piece in &pieces {
                if is_cancelled() {
                    return Ok(None);
                }
                let (shared, own) = match part {
                    ModelPart::Shared => (&now[..], &personal[..]),
                    ModelPart::Personal => (weights, &now[..]),
                };
                let step = self.gradient_of(part, shared, own, piece, loss)?;
                mean += f64::from(step.loss) * piece.shape[0] as f64 / samples as f64;
                for ((w, v), g) in now.iter_mut().zip(&mut velocity).zip(&step.gradient) {
                    *v = sgd.momentum * *v + g;
                    *w -= sgd.learning_rate * *v;
                }
            }
        }
        let gradient = start.iter().zip(&now).map(|(old, new)| old - new).collect();
        Ok(Some(Gradient { loss: mean as f32, gradient }))
    }
}
