//! A node in a simulation.

use std::sync::Arc;

use evenhand_node::inline::Inline;
use evenhand_node::library::Library;
use evenhand_node::source::Source;
use evenhand_protocol::identity::NodeId;
use evenhand_protocol::message::{Answer, Message, Phase};

use super::company::{Carriage, Conduct, Seat};
use super::mail::{Inbox, Parcel};
use super::{LATENCY_MS, TRAINING_MS};

/// A node and its mailbox.
pub(super) struct SimulatedNode {
    pub(super) id: NodeId,
    pub(super) node: Inline<Box<dyn Source>>,
    pub(super) conduct: Box<dyn Conduct>,
    carriage: Carriage,
    pub(super) is_away: bool,
    inbox: Inbox,
}

impl SimulatedNode {
    pub(super) fn new(seat: Seat, carriage: Carriage, library: &Arc<Library>) -> Self {
        let Seat { id, settings, source, readings_a_round, conduct } = seat;
        let node = Inline::new(settings, 1, source, readings_a_round, Arc::clone(library));
        Self { id, node, conduct, carriage, is_away: false, inbox: Inbox::new() }
    }

    pub(super) fn connect(&mut self) -> Vec<Message> {
        self.is_away = false;
        self.node.connect().into_iter().map(|said| said.message).collect()
    }

    /// Goes away; what the broker says about that.
    pub(super) fn leave(&mut self) -> Message {
        self.is_away = true;
        self.node.disconnect();
        Message::Status(self.node.node().farewell())
    }

    /// What it says to its mail, and after how long. Mail of one who is away is lost.
    pub(super) fn read(&mut self, mail: Vec<Parcel>, exploiting: u32) -> Vec<(u32, Parcel)> {
        let mut said = Vec::new();
        if self.is_away {
            return said;
        }
        for parcel in mail {
            let Some(message) = self.inbox.take_in("coordinator", parcel) else { continue };
            let before = self.node.training();
            let answers = self.node.hear(message);
            let delay_ms = if self.node.training() > before { LATENCY_MS + TRAINING_MS } else { LATENCY_MS };
            for answer in answers.into_iter().filter(|answer| !self.withholds(&answer.message, exploiting)) {
                said.push((delay_ms, self.carriage.parcel(answer.message)));
            }
        }
        said
    }

    fn withholds(&self, message: &Message, exploiting: u32) -> bool {
        match message {
            Message::Answer(Answer::Update(update)) => {
                let drawing = self.node.node().phase() == Some(Phase::Exploiting);
                let exploiting = if drawing { exploiting + 1 } else { 0 };
                self.conduct.is_silent(update.round, exploiting)
            }
            _ => false,
        }
    }
}
