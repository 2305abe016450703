//! Clean samples on which a strategy of the laboratory judges models.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use evenhand_federation::Weights;
use evenhand_models::{Loss, Model, Trainer};
use rayon::prelude::*;

use crate::baseline::Validation;
use crate::sim::online::EvaluationBatch;

/// Samples of one batch, scored by trainers that threads share.
pub(super) struct ValidationBatch {
    model: Model,
    loss: Loss,
    batch: EvaluationBatch,
    idle: Mutex<Vec<Trainer>>,
}

impl ValidationBatch {
    pub(super) fn new(model: &Model, loss: Loss, batch: EvaluationBatch) -> Self {
        Self { model: model.clone(), loss, batch, idle: Mutex::default() }
    }

    fn loss_of(&self, weights: &Weights) -> Option<f64> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = idle().pop();
        let mut trainer = taken.unwrap_or_else(|| Trainer::new(&self.model));
        let score = self.batch.score(&mut trainer, self.loss, weights.values());
        idle().push(trainer);
        score.ok().map(|score| score.loss)
    }
}

impl Validation for ValidationBatch {
    fn losses(&self, models: &[Weights]) -> Option<Vec<f64>> {
        models.par_iter().map(|weights| self.loss_of(weights)).collect()
    }
}

impl fmt::Debug for ValidationBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValidationBatch")
            .field("samples", &self.batch.batch.samples())
            .finish_non_exhaustive()
    }
}
