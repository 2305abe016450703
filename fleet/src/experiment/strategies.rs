//! The strategy of a trial, with what only the laboratory knows: batch sizes, ζ, and validation data.

use std::sync::Arc;

use evenhand_federation::strategy::Strategy;
use evenhand_models::{Loss, Model};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::setup::{Setup, StepKind};
use super::validation::ValidationBatch;
use super::variant::Variant;
use crate::baseline::{self, Gog, Oracle, PublishedStep, QFfl};
use crate::data::AsPublished;
use crate::scenario::SampleStream;
use crate::sim::SimulationError;
use crate::sim::online::EvaluationBatch;

/// Validation samples, at most: those of the round after the last, which no node measures.
const VALIDATION_SAMPLES: usize = 64;

impl Setup {
    /// The strategy of the variant before its first round.
    pub(super) fn strategy(
        &self,
        stream: &SampleStream,
        model: &Model,
        loss: Loss,
    ) -> Result<Box<dyn Strategy>, SimulationError> {
        let strategy: Box<dyn Strategy> = match self.variant {
            Variant::QFfl => Box::new(QFfl::with_shares(stream.shares())),
            Variant::Gog => {
                let batch = validation(stream, self.seed);
                let judge = ValidationBatch::new(model, loss, batch);
                Box::new(Gog::with_validation(Arc::new(judge), self.seed))
            }
            Variant::Oracle => {
                let qualities = stream.zetas().iter().map(|zeta| -zeta).collect();
                Box::new(Oracle::new(qualities, self.k))
            }
            other => {
                let found = baseline::strategy(other.strategy());
                let defect = || SimulationError::Defect("a variant without a strategy".into());
                (found.ok_or_else(defect)?.create)()
            }
        };
        // The published code's step is a setting of the federation.
        Ok(match (self.step, self.as_published) {
            (StepKind::Published, AsPublished::Paper) => {
                Box::new(PublishedStep::new(strategy, stream.shares()))
            }
            _ => strategy,
        })
    }
}

fn validation(stream: &SampleStream, seed: u64) -> EvaluationBatch {
    let clean = stream.clean(stream.rounds());
    let scales = clean.scales.iter().map(|(mean, deviation)| (f64::from(*mean), f64::from(*deviation)));
    let all = EvaluationBatch { batch: clean.batch, scales: scales.collect() };
    all.thinned(VALIDATION_SAMPLES, &mut ChaCha8Rng::seed_from_u64(seed))
}
