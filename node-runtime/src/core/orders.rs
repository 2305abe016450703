//! Training orders and their answers: at most one training at a time, one answer a round.

use std::sync::Arc;

use evenhand_protocol::codec::{self, CodecKind};
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{Answer, Declined, LossKind, Train, Update, UpdateKind};
use evenhand_protocol::tick::Tick;
use rand_chacha::rand_core::Rng;
use serde::{Deserialize, Serialize};

use super::effect::{NodeEffect, TrainingJob};
use super::graph::GraphState;
use super::input::Trained;
use super::node::{HeldModel, Node};
use crate::privacy::ReleaseKind;

/// The most work that an order may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderLimits {
    /// An order with more epochs is declined.
    pub epochs_max: u32,
    /// A training ends after so many milliseconds, whatever the order's deadline is.
    pub training_ms_max: u32,
}

impl Default for OrderLimits {
    fn default() -> Self {
        Self { epochs_max: 100, training_ms_max: 10 * 60_000 }
    }
}

/// An order that waits for its graph, its data, or the end of another training.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QueuedOrder {
    key: OrderKey,
    loss: LossKind,
    kind: UpdateKind,
    codec: CodecKind,
    samples_max: usize,
    deadline: Tick,
}

/// Identity of an order: a round and its weights, since a restarted federation counts its rounds from the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OrderKey {
    round: u32,
    weights: Digest,
}

/// A training that was started.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RunningTraining {
    pub(super) job_id: u64,
    key: OrderKey,
    kind: UpdateKind,
    codec: CodecKind,
    samples: usize,
    fresh: usize,
    upto: i64,
    /// The driver was told to end it.
    cancelled: bool,
}

/// The last answer, for repetition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SentAnswer {
    key: OrderKey,
    answer: Answer,
}

impl Node {
    pub(super) fn queue_order(&mut self, now: Tick, train: Train, effects: &mut Vec<NodeEffect>) {
        if train.round < self.round {
            return;
        }
        self.notice_round(train.round);
        let key = OrderKey { round: train.round, weights: train.weights_digest };
        if self.answered.as_ref().is_some_and(|answered| answered.key == key) {
            return self.repeat_answer(effects);
        }
        if self.training.as_ref().is_some_and(|training| training.key == key) {
            return;
        }
        if let Some(weights) = train.weights
            && Digest::of_weights(&weights) == train.weights_digest
        {
            self.held = Some(HeldModel { digest: train.weights_digest, weights: weights.into() });
        }
        let limits = self.settings.order_limits;
        self.excessive_epochs = match train.kind {
            UpdateKind::Epochs { epochs, .. } => Some(epochs).filter(|epochs| *epochs > limits.epochs_max),
            _ => None,
        };
        if self.excessive_epochs.is_some() {
            return self.decline(key, Declined::TooMuchWork, effects);
        }
        self.too_few_samples = self.below_floor(train.samples_max);
        if self.too_few_samples.is_some() {
            return self.decline(key, Declined::TooFewSamples, effects);
        }
        self.order = Some(QueuedOrder {
            key,
            loss: train.loss,
            kind: train.kind,
            codec: train.codec,
            samples_max: train.samples_max as usize,
            deadline: now.plus_ms(train.deadline_ms.min(limits.training_ms_max)),
        });
    }

    /// So many samples, if they cannot be of as many readings as the floor asks for.
    pub(super) fn below_floor(&self, samples_max: u32) -> Option<u32> {
        ((samples_max as usize) < self.floor().least()).then_some(samples_max)
    }

    /// Starts, answers or drops the queued order as far as possible.
    pub(super) fn advance_order(&mut self, effects: &mut Vec<NodeEffect>) {
        self.order.take_if(|order| order.key.round < self.round);
        self.cancel_outdated(effects);
        if self.training.is_some() || self.reading {
            return;
        }
        let (graph, parameters, sample) = match &self.graph {
            GraphState::Ready { info, sample } => (info.digest, info.parameters, sample.clone()),
            GraphState::Unfit(_) => return self.give_up(Declined::ModelUnfit, effects),
            GraphState::Unknown | GraphState::Loading(_) | GraphState::Requested(_) => return,
        };
        let Some(order) = self.order.take() else { return };
        let weights = match &self.held {
            Some(held) if held.digest == order.key.weights => Arc::clone(&held.weights),
            _ => return self.answer(Answer::NeedWeights { round: order.key.round }, effects),
        };
        if weights.len() != parameters {
            return self.decline(order.key, Declined::ModelUnfit, effects);
        }
        if !self.may_release(ReleaseKind::Update) {
            return self.decline(order.key, Declined::PrivacySpent, effects);
        }
        let Some(mut batch) = self.window.batch(order.samples_max, self.floor(), &mut self.generator) else {
            return self.decline(order.key, Declined::NoData, effects);
        };
        batch.batch.shape = std::iter::once(batch.samples).chain(sample).collect();
        self.jobs_started += 1;
        effects.push(NodeEffect::Train(Box::new(TrainingJob {
            id: self.jobs_started,
            round: order.key.round,
            graph,
            weights,
            previous: self.previous.clone(),
            batch: batch.batch,
            fresh: batch.fresh,
            row_clip: self.settings.privacy.row_clip(),
            loss: order.loss,
            kind: order.kind,
            deadline: order.deadline,
            seed: self.generator.next_u64(),
        })));
        self.training = Some(RunningTraining {
            job_id: self.jobs_started,
            key: order.key,
            kind: order.kind,
            codec: order.codec,
            samples: batch.samples,
            fresh: batch.fresh,
            upto: batch.upto,
            cancelled: false,
        });
    }

    /// Lets a training end whose update would not count any more: a newer round, or a newer order, is there.
    fn cancel_outdated(&mut self, effects: &mut Vec<NodeEffect>) {
        let newer = self.order.is_some();
        if let Some(training) = &mut self.training
            && !training.cancelled
            && (newer || training.key.round < self.round)
        {
            training.cancelled = true;
            effects.push(NodeEffect::CancelTraining(training.job_id));
        }
    }

    pub(super) fn finish_training(
        &mut self,
        job_id: u64,
        outcome: Result<Trained, Declined>,
        effects: &mut Vec<NodeEffect>,
    ) {
        let Some(training) = self.training.take_if(|training| training.job_id == job_id) else { return };
        if training.key.round < self.round || self.order.is_some() {
            return; // The round is over; its samples stay unused.
        }
        let finite = |trained: &Trained| {
            trained.loss.is_finite() && trained.vector.iter().all(|entry| entry.is_finite())
        };
        let trained = match outcome {
            Ok(trained) if finite(&trained) => trained,
            Ok(_) => return self.decline(training.key, Declined::TrainingFailed, effects),
            Err(reason) => return self.decline(training.key, reason, effects),
        };
        let is_gradient = !matches!(training.kind, UpdateKind::Epochs { .. });
        let rows_clipped = self.rows_clipped(training.samples, is_gradient);
        let vector = self.release(ReleaseKind::Update, trained.vector, rows_clipped);
        let Some(update) = self.optimiser.update(training.kind, vector) else {
            return self.decline(training.key, Declined::TrainingFailed, effects);
        };
        let (loss, online_loss) = match self.is_noisy() {
            true => (0.0, None),
            false => (trained.loss, trained.online_loss.filter(|loss| loss.is_finite())),
        };
        self.window.mark_used(training.upto);
        let vector = codec::encode(training.codec, &update, &mut self.feedback, &mut self.generator);
        let update = Update {
            round: training.key.round,
            samples: training.samples as u32,
            loss,
            online_loss: online_loss.unwrap_or(0.0),
            online_samples: if online_loss.is_some() { training.fresh as u32 } else { 0 },
            vector,
        };
        self.conclude(training.key, Answer::Update(update), effects);
        self.predict(effects);
    }

    /// An order of this round was decoded.
    pub(super) fn is_busy_with(&self, round: u32) -> bool {
        let keys = [
            self.order.as_ref().map(|order| order.key),
            self.training.as_ref().map(|training| training.key),
            self.answered.as_ref().map(|answered| answered.key),
        ];
        keys.into_iter().flatten().any(|key| key.round == round)
    }

    pub(super) fn repeat_answer(&self, effects: &mut Vec<NodeEffect>) {
        if let Some(SentAnswer { key, answer }) = &self.answered
            && key.round == self.round
        {
            self.answer(answer.clone(), effects);
        }
    }

    fn give_up(&mut self, reason: Declined, effects: &mut Vec<NodeEffect>) {
        if let Some(order) = self.order.take() {
            self.decline(order.key, reason, effects);
        }
    }

    fn decline(&mut self, key: OrderKey, reason: Declined, effects: &mut Vec<NodeEffect>) {
        self.conclude(key, Answer::Decline { round: key.round, reason }, effects);
    }

    fn conclude(&mut self, key: OrderKey, answer: Answer, effects: &mut Vec<NodeEffect>) {
        self.previous = self.held.as_ref().map(|held| Arc::clone(&held.weights));
        self.answered = Some(SentAnswer { key, answer: answer.clone() });
        effects.push(NodeEffect::Persist);
        self.answer(answer, effects);
    }
}
