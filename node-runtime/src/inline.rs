//! A node whose effects are carried out at once: on the caller's thread, without a link and without a clock.
//!
//! The simulated fleet drives thousands of these; decisions are made by the same [`core`](crate::core) that runs on a meter.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use evenhand_protocol::message::{Declined, Message};
use evenhand_protocol::tick::Tick;
use evenhand_protocol::topic::Channel;

use crate::core::{GraphOutcome, Node, NodeEffect, NodeInput, NodeSettings};
use crate::model_cache::ModelCache;
use crate::reading::InputBatch;
use crate::source::{Source, SourceError};

/// A message that a node publishes.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// The topic's last level.
    pub channel: Channel,
    /// The message.
    pub message: Message,
}

/// A node, its source and the models it can use.
pub struct InlineNode<S> {
    node: Node,
    source: S,
    readings_per_round: usize,
    models: Arc<ModelCache>,
    training: Duration,
}

impl<S: Source> InlineNode<S> {
    /// A node that was just started; it receives nothing until it is [connected](Self::connect).
    pub fn new(
        settings: NodeSettings,
        session: u64,
        source: S,
        readings_per_round: usize,
        models: Arc<ModelCache>,
    ) -> Self {
        let node = Node::new(settings, session);
        Self { node, source, readings_per_round, models, training: Duration::ZERO }
    }

    /// Connects the node; what it publishes.
    pub fn connect(&mut self, now: Tick) -> Vec<Published> {
        self.drive(now, NodeInput::Connected)
    }

    /// Disconnects the node.
    pub fn disconnect(&mut self, now: Tick) {
        self.drive(now, NodeInput::Disconnected);
    }

    /// Delivers a message to the node; what it publishes in answer.
    pub fn receive(&mut self, now: Tick, message: Message) -> Vec<Published> {
        match message {
            Message::Manifest(manifest) => self.drive(now, NodeInput::Manifest(manifest)),
            Message::Order(order) => self.drive(now, NodeInput::Order(order)),
            Message::Account(account) => self.drive(now, NodeInput::Account(account)),
            Message::Status(_) | Message::Answer(_) => Vec::new(),
        }
    }

    /// The node itself.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Its source.
    pub fn source(&mut self) -> &mut S {
        &mut self.source
    }

    /// Time spent in training so far.
    pub fn training(&self) -> Duration {
        self.training
    }

    fn drive(&mut self, now: Tick, input: NodeInput) -> Vec<Published> {
        let mut published = Vec::new();
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            for effect in self.node.step(now, input) {
                match effect {
                    NodeEffect::Publish { channel, message, .. } => {
                        published.push(Published { channel, message })
                    }
                    other => inputs.extend(self.carry_out(other)),
                }
            }
        }
        published
    }

    fn carry_out(&mut self, effect: NodeEffect) -> Option<NodeInput> {
        match effect {
            NodeEffect::FindGraph(digest) => {
                let found = self.models.find(digest);
                let outcome = found.map_or(GraphOutcome::Absent, |model| GraphOutcome::Ready(model.info()));
                Some(NodeInput::Graph { digest, outcome })
            }
            NodeEffect::LoadGraph { digest, onnx } => {
                let loaded = self.models.add(digest, &onnx);
                let outcome = loaded.map_or(GraphOutcome::Unfit, |model| GraphOutcome::Ready(model.info()));
                Some(NodeInput::Graph { digest, outcome })
            }
            NodeEffect::Read { rounds } => {
                let read = read_rounds(&mut self.source, rounds, self.readings_per_round);
                Some(NodeInput::Data(read.unwrap_or_else(|_| InputBatch::Readings(Vec::new()))))
            }
            NodeEffect::Train(job) => {
                let begin = Instant::now();
                let trained = match self.source.local_training() {
                    Some(agent) => agent.train(&job),
                    None => {
                        let model = self.models.find(job.graph);
                        model.and_then(|model| model.train(&job, || false).ok().flatten())
                    }
                };
                let outcome = trained.ok_or(Declined::TrainingFailed);
                self.training += begin.elapsed();
                Some(NodeInput::Trained { job_id: job.id, outcome })
            }
            NodeEffect::TrainPersonal(job) => {
                let begin = Instant::now();
                let model = self.models.find(job.graph);
                let weights = model.and_then(|model| model.train_personal(&job).ok());
                self.training += begin.elapsed();
                Some(NodeInput::PersonalTrained { graph: job.graph, weights })
            }
            NodeEffect::Predict(prediction) => {
                let model = self.models.find(prediction.graph);
                let outputs = model.and_then(|model| model.predict(&prediction).ok());
                Some(NodeInput::Predicted { id: prediction.id, for_ms: prediction.query.for_ms, outputs })
            }
            NodeEffect::CancelTraining(_)
            | NodeEffect::Forecast(_)
            | NodeEffect::Journal(_)
            | NodeEffect::Persist
            | NodeEffect::Publish { .. } => None,
        }
    }
}

/// Readings that a node catches up with at most after a long absence.
const CATCH_UP_MAX: usize = 65_536;

/// The readings of some rounds.
pub(crate) fn read_rounds(
    source: &mut dyn Source,
    rounds: u32,
    readings_per_round: usize,
) -> Result<InputBatch, SourceError> {
    source.read((rounds as usize).saturating_mul(readings_per_round).min(CATCH_UP_MAX))
}

#[cfg(test)]
mod tests;
