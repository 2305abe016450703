//! Reference gradients: measured on request, never applied.

use std::sync::Arc;

use evenhand_protocol::codec::Bf16;
use evenhand_protocol::message::{Answer, Declined, MeasureRequest, Measured, SkillPermille, UpdateKind};
use evenhand_protocol::reference::{reference_weights, sketch};
use evenhand_protocol::tick::Tick;
use serde::{Deserialize, Serialize};

use super::effect::{NodeEffect, TrainingJob};
use super::graph::GraphState;
use super::input::Trained;
use super::node::Node;
use crate::privacy::ReleaseKind;

/// Identity of a request: a round and its seed, since a restarted federation counts its rounds from the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct MeasureKey {
    round: u32,
    seed: u64,
}

/// A request that waits for its graph or its data.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QueuedMeasure {
    request: MeasureRequest,
    deadline: Tick,
}

/// A measurement that was started.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RunningMeasurement {
    job_id: u64,
    key: MeasureKey,
    dimension: usize,
    samples: usize,
    upto: i64,
}

/// The last answer, for repetition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SentMeasurement {
    key: MeasureKey,
    answer: Answer,
}

/// θ_ref and the seed it was made from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReferenceWeights {
    seed: u64,
    weights: Arc<[f32]>,
}

impl Node {
    pub(super) fn queue_measure(
        &mut self,
        now: Tick,
        request: MeasureRequest,
        effects: &mut Vec<NodeEffect>,
    ) {
        if request.round < self.round {
            return;
        }
        self.notice_round(request.round);
        let key = MeasureKey { round: request.round, seed: request.seed };
        if self.measured.as_ref().is_some_and(|measured| measured.key == key) {
            return self.repeat_measurement(effects);
        }
        self.too_few_samples = self.below_floor(request.samples_max);
        if self.too_few_samples.is_some() {
            return self.decline_measure(key, Declined::TooFewSamples, effects);
        }
        if self.measurement.as_ref().is_none_or(|running| running.key != key) {
            let deadline = now.plus_ms(request.deadline_ms.min(self.settings.order_limits.training_ms_max));
            self.measure = Some(QueuedMeasure { request, deadline });
        }
    }

    /// Starts, answers or drops the queued request as far as possible.
    pub(super) fn advance_measure(&mut self, effects: &mut Vec<NodeEffect>) {
        self.measure.take_if(|queued| queued.request.round < self.round);
        if self.measurement.is_some() || self.reading {
            return;
        }
        let (graph, initial, sample) = match &self.graph {
            GraphState::Ready { info, sample } => (info.digest, Arc::clone(&info.initial), sample.clone()),
            GraphState::Unfit(_) => {
                if let Some(QueuedMeasure { request, .. }) = self.measure.take() {
                    let key = MeasureKey { round: request.round, seed: request.seed };
                    self.decline_measure(key, Declined::ModelUnfit, effects);
                }
                return;
            }
            GraphState::Unknown | GraphState::Loading(_) | GraphState::Requested(_) => return,
        };
        let Some(QueuedMeasure { request, deadline }) = self.measure.take() else { return };
        let key = MeasureKey { round: request.round, seed: request.seed };
        if !self.may_release(ReleaseKind::Measurement) {
            return self.decline_measure(key, Declined::PrivacySpent, effects);
        }
        let Some(mut batch) = self.window.unmeasured(request.samples_max as usize, self.floor()) else {
            return self.decline_measure(key, Declined::NoData, effects);
        };
        batch.batch.shape = std::iter::once(batch.samples).chain(sample).collect();
        self.jobs_started += 1;
        effects.push(NodeEffect::Train(Box::new(TrainingJob {
            id: self.jobs_started,
            round: request.round,
            graph,
            weights: self.reference_weights(&initial, request.seed),
            previous: None,
            batch: batch.batch,
            fresh: batch.fresh,
            row_clip: self.settings.privacy.row_clip(),
            loss: self.window.reference_loss(request.loss),
            kind: UpdateKind::Gradient,
            deadline,
            seed: request.seed,
        })));
        self.measurement = Some(RunningMeasurement {
            job_id: self.jobs_started,
            key,
            dimension: request.dimension as usize,
            samples: batch.samples,
            upto: batch.upto,
        });
    }

    /// Answers with the gradient of a measurement, if the job was one.
    pub(super) fn finish_measurement(
        &mut self,
        job_id: u64,
        outcome: Result<Trained, Declined>,
        effects: &mut Vec<NodeEffect>,
    ) {
        let Some(running) = self.measurement.take_if(|running| running.job_id == job_id) else { return };
        if running.key.round < self.round || self.measure.is_some() {
            return; // The round is over; its samples stay unmeasured.
        }
        let gradient = match outcome {
            Ok(trained) if trained.vector.iter().all(|entry| entry.is_finite()) => trained.vector,
            Ok(_) => return self.decline_measure(running.key, Declined::TrainingFailed, effects),
            Err(reason) => return self.decline_measure(running.key, reason, effects),
        };
        self.window.mark_measured(running.upto);
        let MeasureKey { round, seed } = running.key;
        let vector = match self.rows_clipped(running.samples, true) {
            // A sketch of clipped rows would be of another length.
            rows @ Some(_) => {
                sketch(&self.release(ReleaseKind::Measurement, gradient, rows), seed, running.dimension)
            }
            None => self.release(ReleaseKind::Measurement, sketch(&gradient, seed, running.dimension), None),
        };
        let vector = Bf16::encode(&vector);
        let skill = if self.is_noisy() { None } else { self.window.skill().map(SkillPermille::of) };
        let samples = running.samples as u32;
        let answer = Answer::Measured(Measured { round, samples, skill, vector });
        self.conclude_measure(running.key, answer, effects);
    }

    pub(super) fn repeat_measurement(&self, effects: &mut Vec<NodeEffect>) {
        if let Some(SentMeasurement { key, answer }) = &self.measured
            && key.round == self.round
        {
            self.answer(answer.clone(), effects);
        }
    }

    fn decline_measure(&mut self, key: MeasureKey, reason: Declined, effects: &mut Vec<NodeEffect>) {
        self.conclude_measure(key, Answer::Unmeasured { round: key.round, reason }, effects);
    }

    fn conclude_measure(&mut self, key: MeasureKey, answer: Answer, effects: &mut Vec<NodeEffect>) {
        self.measured = Some(SentMeasurement { key, answer: answer.clone() });
        effects.push(NodeEffect::Persist);
        self.answer(answer, effects);
    }

    fn reference_weights(&mut self, initial: &[f32], seed: u64) -> Arc<[f32]> {
        match &self.reference {
            Some(known) if known.seed == seed => Arc::clone(&known.weights),
            _ => {
                let weights: Arc<[f32]> = reference_weights(initial, seed).into();
                self.reference = Some(ReferenceWeights { seed, weights: Arc::clone(&weights) });
                weights
            }
        }
    }
}
