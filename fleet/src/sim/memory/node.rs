//! A node of a simulation.

use std::sync::Arc;

use evenhand_node::inline::InlineNode;
use evenhand_node::model_cache::ModelCache;
use evenhand_node::source::Source;
use evenhand_protocol::identity::NodeId;
use evenhand_protocol::message::{Answer, Message, Phase};
use evenhand_protocol::tick::Tick;

use super::message::{MessageDecoder, WireMessage};
use super::spec::{NodeSpec, WireMode};
use super::{LATENCY_MS, TRAINING_MS};
use crate::scenario::{Attacker, SeededBehaviour};

/// A node with the decoder of its messages.
pub(super) struct MemoryNode {
    pub(super) id: NodeId,
    pub(super) node: InlineNode<Box<dyn Source>>,
    pub(super) behaviour: SeededBehaviour,
    attacker: Option<Attacker>,
    wire_mode: WireMode,
    pub(super) is_away: bool,
    decoder: MessageDecoder,
}

impl MemoryNode {
    pub(super) fn new(spec: NodeSpec, wire_mode: WireMode, models: &Arc<ModelCache>) -> Self {
        let NodeSpec { id, settings, source, readings_a_round, behaviour, attacker } = spec;
        let node = InlineNode::new(settings, 1, source, readings_a_round, Arc::clone(models));
        let is_away = behaviour.behaviour.joins_later();
        Self { id, node, behaviour, attacker, wire_mode, is_away, decoder: MessageDecoder::new() }
    }

    pub(super) fn connect(&mut self, now: Tick) -> Vec<Message> {
        self.is_away = false;
        self.node.connect(now).into_iter().map(|published| published.message).collect()
    }

    /// Disconnects; returns the last will, which the broker publishes.
    pub(super) fn leave(&mut self, now: Tick) -> Message {
        self.is_away = true;
        self.node.disconnect(now);
        Message::Status(self.node.node().offline_status())
    }

    /// Its answers to `messages`, each with its delay. Messages to a node that is away are lost.
    pub(super) fn receive(
        &mut self,
        now: Tick,
        messages: Vec<WireMessage>,
        exploiting: u32,
    ) -> Vec<(u32, WireMessage)> {
        let mut sent = Vec::new();
        if self.is_away {
            return sent;
        }
        for message in messages {
            let Some(message) = self.decoder.decode("coordinator", message) else { continue };
            if let Some(attacker) = &mut self.attacker {
                attacker.observe(&message);
            }
            let before = self.node.training();
            let answers = self.node.receive(now, message);
            let delay_ms = if self.node.training() > before { LATENCY_MS + TRAINING_MS } else { LATENCY_MS };
            for answer in answers {
                if self.withholds(&answer.message, exploiting) {
                    continue;
                }
                let message = match &mut self.attacker {
                    Some(attacker) => attacker.tamper(answer.message, self.node.node().weights()),
                    None => Some(answer.message),
                };
                sent.extend(message.map(|message| (delay_ms, self.wire_mode.encode(message))));
            }
        }
        sent
    }

    /// The skill of its day-ahead forecasts.
    pub(super) fn skill(&self) -> Option<f64> {
        let [_, all] = self.node.node().window().day_ahead()?.forecaster().skill().overall();
        all.skill()
    }

    fn withholds(&self, message: &Message, exploiting: u32) -> bool {
        match message {
            Message::Answer(Answer::Update(update)) => {
                let drawing = self.node.node().phase() == Some(Phase::Exploiting);
                self.behaviour.is_silent(update.round, drawing.then_some(exploiting + 1))
            }
            _ => false,
        }
    }
}
