//! From an order to its answer: at most one training at a time, one answer a round.

use std::sync::Arc;

use evenhand_protocol::codec::{self, CodecKind};
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{Answer, Declined, LossKind, Train, Update, UpdateKind};
use rand_chacha::rand_core::Rng;
use serde::{Deserialize, Serialize};

use super::effect::{Effect, Job};
use super::graph::Graph;
use super::input::Trained;
use super::node::{Held, Node};

/// An order that waits for its graph, its readings, or the end of another training.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pending {
    task: Task,
    loss: LossKind,
    kind: UpdateKind,
    codec: CodecKind,
    samples_max: usize,
    deadline_ms: u32,
}

/// Which work an answer is for: a round of a federation that may have begun anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Task {
    round: u32,
    weights: Digest,
}

/// A training under way.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Training {
    ticket: u64,
    task: Task,
    kind: UpdateKind,
    codec: CodecKind,
    samples: usize,
    fresh: usize,
    upto: i64,
}

/// The last answer, kept to be sent again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Answered {
    task: Task,
    answer: Answer,
}

impl Node {
    pub(super) fn accept(&mut self, train: Train, effects: &mut Vec<Effect>) {
        if train.round < self.round {
            return;
        }
        self.notice_round(train.round, effects);
        let task = Task { round: train.round, weights: train.weights_digest };
        if self.answered.as_ref().is_some_and(|answered| answered.task == task) {
            return self.repeat_answer(effects);
        }
        if self.training.as_ref().is_some_and(|training| training.task == task) {
            return;
        }
        if let Some(weights) = train.weights
            && Digest::of_weights(&weights) == train.weights_digest
        {
            self.held = Some(Held { digest: train.weights_digest, weights: weights.into() });
        }
        self.order = Some(Pending {
            task,
            loss: train.loss,
            kind: train.kind,
            codec: train.codec,
            samples_max: train.samples_max as usize,
            deadline_ms: train.deadline_ms,
        });
    }

    /// Goes on with the order as far as is possible now.
    pub(super) fn work(&mut self, effects: &mut Vec<Effect>) {
        self.order.take_if(|order| order.task.round < self.round);
        if self.training.is_some() || self.reading {
            return;
        }
        let (graph, parameters, sample) = match &self.graph {
            Graph::Held { card, sample } => (card.digest, card.parameters, sample.clone()),
            Graph::Unfit(_) => return self.give_up(Declined::ModelUnfit, effects),
            Graph::Unknown | Graph::Sought(_) | Graph::Asked(_) => return,
        };
        let Some(order) = self.order.take() else { return };
        let weights = match &self.held {
            Some(held) if held.digest == order.task.weights => Arc::clone(&held.weights),
            _ => return self.answer(Answer::NeedWeights { round: order.task.round }, effects),
        };
        if weights.len() != parameters {
            return self.decline(order.task, Declined::ModelUnfit, effects);
        }
        let Some(mut taken) = self.window.batch(order.samples_max, &mut self.generator) else {
            return self.decline(order.task, Declined::NoData, effects);
        };
        taken.batch.shape = std::iter::once(taken.samples).chain(sample).collect();
        self.tickets += 1;
        effects.push(Effect::Train(Box::new(Job {
            ticket: self.tickets,
            round: order.task.round,
            graph,
            weights,
            own: self.own.clone(),
            batch: taken.batch,
            fresh: taken.fresh,
            loss: order.loss,
            kind: order.kind,
            deadline_ms: order.deadline_ms,
            seed: self.generator.next_u64(),
        })));
        self.training = Some(Training {
            ticket: self.tickets,
            task: order.task,
            kind: order.kind,
            codec: order.codec,
            samples: taken.samples,
            fresh: taken.fresh,
            upto: taken.upto,
        });
    }

    pub(super) fn finish(
        &mut self,
        ticket: u64,
        outcome: Result<Trained, Declined>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(training) = self.training.take_if(|training| training.ticket == ticket) else { return };
        if training.task.round < self.round || self.order.is_some() {
            return; // The federation went on without it; its samples stay unused.
        }
        let finite = |trained: &Trained| {
            trained.loss.is_finite() && trained.vector.iter().all(|entry| entry.is_finite())
        };
        let trained = match outcome {
            Ok(trained) if finite(&trained) => trained,
            Ok(_) => return self.decline(training.task, Declined::TrainingFailed, effects),
            Err(reason) => return self.decline(training.task, reason, effects),
        };
        let Some(update) = self.optimiser.update(training.kind, trained.vector) else {
            return self.decline(training.task, Declined::TrainingFailed, effects);
        };
        let online_loss = trained.online_loss.filter(|loss| loss.is_finite());
        self.window.mark_used(training.upto);
        let vector = codec::encode(training.codec, &update, &mut self.feedback, &mut self.generator);
        let update = Update {
            round: training.task.round,
            samples: training.samples as u32,
            loss: trained.loss,
            online_loss: online_loss.unwrap_or(0.0),
            online_samples: if online_loss.is_some() { training.fresh as u32 } else { 0 },
            vector,
        };
        self.conclude(training.task, Answer::Update(update), effects);
        self.predict(effects);
    }

    /// Whether an order of this round was understood.
    pub(super) fn is_busy_with(&self, round: u32) -> bool {
        let tasks = [
            self.order.as_ref().map(|order| order.task),
            self.training.as_ref().map(|training| training.task),
            self.answered.as_ref().map(|answered| answered.task),
        ];
        tasks.into_iter().flatten().any(|task| task.round == round)
    }

    pub(super) fn repeat_answer(&self, effects: &mut Vec<Effect>) {
        if let Some(Answered { task, answer }) = &self.answered
            && task.round == self.round
        {
            self.answer(answer.clone(), effects);
        }
    }

    fn give_up(&mut self, reason: Declined, effects: &mut Vec<Effect>) {
        if let Some(order) = self.order.take() {
            self.decline(order.task, reason, effects);
        }
    }

    fn decline(&mut self, task: Task, reason: Declined, effects: &mut Vec<Effect>) {
        self.conclude(task, Answer::Decline { round: task.round, reason }, effects);
    }

    fn conclude(&mut self, task: Task, answer: Answer, effects: &mut Vec<Effect>) {
        self.own = self.held.as_ref().map(|held| Arc::clone(&held.weights));
        self.answered = Some(Answered { task, answer: answer.clone() });
        effects.push(Effect::Persist);
        self.answer(answer, effects);
    }
}
