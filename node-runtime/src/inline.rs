//! A node whose wishes are carried out at once: on the caller's thread, without a link and without a clock.
//!
//! The simulated fleet drives thousands of these; what decides is the same [`core`](crate::core) that runs on a meter.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use evenhand_protocol::message::{Declined, Message};
use evenhand_protocol::topic::Channel;

use crate::core::{Card, Effect, GraphOutcome, Input, Node, Settings};
use crate::library::Library;
use crate::reading::Intake;
use crate::source::{Source, SourceError};

/// Something a node says.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// On which of its topics.
    pub channel: Channel,
    /// What.
    pub message: Message,
}

/// A node, its source and the models it can use.
pub struct Inline<S> {
    node: Node,
    source: S,
    readings_per_round: usize,
    library: Arc<Library>,
    training: Duration,
}

impl<S: Source> Inline<S> {
    /// A node that was just started; it hears nothing until it is [connected](Self::connect).
    pub fn new(
        settings: Settings,
        session: u64,
        source: S,
        readings_per_round: usize,
        library: Arc<Library>,
    ) -> Self {
        let node = Node::new(settings, session);
        Self { node, source, readings_per_round, library, training: Duration::ZERO }
    }

    /// The link stands; what the node says about that.
    pub fn connect(&mut self) -> Vec<Said> {
        self.drive(Input::Connected)
    }

    /// The link is gone.
    pub fn disconnect(&mut self) {
        self.drive(Input::Lost);
    }

    /// Something was said to the node; what it answers.
    pub fn hear(&mut self, message: Message) -> Vec<Said> {
        match message {
            Message::Manifest(manifest) => self.drive(Input::Manifest(manifest)),
            Message::Order(order) => self.drive(Input::Order(order)),
            Message::Account(account) => self.drive(Input::Account(account)),
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

    fn drive(&mut self, input: Input) -> Vec<Said> {
        let mut said = Vec::new();
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            for effect in self.node.step(input) {
                match effect {
                    Effect::Publish { channel, message, .. } => said.push(Said { channel, message }),
                    other => inputs.extend(self.carry_out(other)),
                }
            }
        }
        said
    }

    fn carry_out(&mut self, effect: Effect) -> Option<Input> {
        match effect {
            Effect::FindGraph(digest) => {
                let found = self.library.find(digest);
                let outcome =
                    found.map_or(GraphOutcome::Absent, |model| GraphOutcome::Ready(Card::of(&model)));
                Some(Input::Graph { digest, outcome })
            }
            Effect::LoadGraph { digest, onnx } => {
                let loaded = self.library.add(digest, &onnx);
                let outcome =
                    loaded.map_or(GraphOutcome::Unfit, |model| GraphOutcome::Ready(Card::of(&model)));
                Some(Input::Graph { digest, outcome })
            }
            Effect::Read { rounds } => {
                let read = read_rounds(&mut self.source, rounds, self.readings_per_round);
                Some(Input::Intake(read.unwrap_or_else(|_| Intake::Readings(Vec::new()))))
            }
            Effect::Train(job) => {
                let begin = Instant::now();
                let model = self.library.find(job.graph);
                let trained = model.and_then(|model| job.run(&model, || false).ok().flatten());
                let outcome = trained.ok_or(Declined::TrainingFailed);
                self.training += begin.elapsed();
                Some(Input::Trained { ticket: job.ticket, outcome })
            }
            Effect::Predict(prediction) => {
                let value = prediction.run(&self.library.find(prediction.graph)?).ok()?;
                Some(Input::Predicted { for_ms: prediction.query.for_ms, value })
            }
            Effect::Announce(_) | Effect::Journal(_) | Effect::Persist | Effect::Publish { .. } => None,
        }
    }
}

/// Readings a node that was long away catches up with at most.
const CATCH_UP_MAX: usize = 65_536;

/// The readings of so many rounds.
pub(crate) fn read_rounds(
    source: &mut dyn Source,
    rounds: u32,
    readings_per_round: usize,
) -> Result<Intake, SourceError> {
    source.read((rounds as usize).saturating_mul(readings_per_round).min(CATCH_UP_MAX))
}
