//! A round under way: the nodes that were asked, and their answers so far.

use evenhand_protocol::message::{Declined, Refusal};
use serde::{Deserialize, Serialize};

use crate::admission::AcceptedUpdate;
use crate::draw::Draw;
use crate::index::DrawSlot;
use crate::index::NodeIndex;
use crate::input::Tick;
use crate::measuring::{MeasureAnswer, OpenMeasurements};

/// Between two rounds, or in one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum RoundStage {
    /// The next round opens not before `until`, and not without a node.
    Resting { until: Tick },
    /// Updates are coming in.
    Open(OpenRound),
}

impl RoundStage {
    pub(crate) fn round(&self) -> Option<&OpenRound> {
        match self {
            Self::Open(round) => Some(round),
            Self::Resting { .. } => None,
        }
    }

    pub(crate) fn round_mut(&mut self) -> Option<&mut OpenRound> {
        match self {
            Self::Open(round) => Some(round),
            Self::Resting { .. } => None,
        }
    }

    /// Takes the open round out if it is over, and rests from `now` on.
    pub(crate) fn take_if_over(&mut self, now: Tick) -> RoundProgress {
        match self {
            Self::Resting { until } => RoundProgress::Resting { until: *until },
            Self::Open(round) if !round.is_over() => RoundProgress::Open,
            Self::Open(_) => match std::mem::replace(self, Self::Resting { until: now }) {
                Self::Open(round) => RoundProgress::Over(round),
                Self::Resting { until } => RoundProgress::Resting { until },
            },
        }
    }

    /// The stage as it is saved, without updates: nodes send them again.
    pub(crate) fn saved(&self) -> Self {
        match self {
            Self::Open(round) => Self::Open(OpenRound::new(round.draw.clone(), round.opened, None)),
            resting => resting.clone(),
        }
    }
}

/// Progress of a stage.
pub(crate) enum RoundProgress {
    Resting { until: Tick },
    Open,
    Over(OpenRound),
}

/// A round that is under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "SavedRound", into = "SavedRound")]
pub(crate) struct OpenRound {
    pub(crate) draw: Draw,
    pub(crate) opened: Tick,
    answers: Vec<SlotAnswer>,
    waiting: usize,
    pub(crate) measurements: OpenMeasurements,
    /// None after a restore, until the link is up: nobody can be late before it was asked.
    deadline: Option<Tick>,
}

/// A round as it is saved.
#[derive(Serialize, Deserialize)]
struct SavedRound {
    draw: Draw,
    opened: Tick,
}

impl From<SavedRound> for OpenRound {
    fn from(SavedRound { draw, opened }: SavedRound) -> Self {
        Self::new(draw, opened, None)
    }
}

impl From<OpenRound> for SavedRound {
    fn from(OpenRound { draw, opened, .. }: OpenRound) -> Self {
        Self { draw, opened }
    }
}

/// One asked node's answer so far.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SlotAnswer {
    Waiting,
    Arrived(AcceptedUpdate),
    Absent(Absence),
}

/// The reason why no update is expected from a node any more. All but an arrival can be mended in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Absence {
    Declined(Declined),
    Refused(Refusal),
    Disconnected,
    Missed,
}

impl OpenRound {
    pub(crate) fn new(draw: Draw, opened: Tick, deadline: Option<Tick>) -> Self {
        let waiting = draw.asked().len();
        let measurements = OpenMeasurements::new(draw.measure());
        Self { answers: vec![SlotAnswer::Waiting; waiting], waiting, measurements, draw, opened, deadline }
    }

    pub(crate) fn deadline(&self) -> Option<Tick> {
        self.deadline
    }

    pub(crate) fn set_deadline(&mut self, deadline: Tick) {
        self.deadline = Some(deadline);
    }

    /// True if no further answer is expected.
    pub(crate) fn is_over(&self) -> bool {
        self.waiting == 0 && self.measurements.is_over()
    }

    pub(crate) fn has_arrived(&self, slot: DrawSlot) -> bool {
        matches!(self.answers[slot.0], SlotAnswer::Arrived(_))
    }

    /// Slots from which an answer is still expected.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = DrawSlot> {
        let waiting =
            self.answers.iter().enumerate().filter(|(_, answer)| matches!(answer, SlotAnswer::Waiting));
        waiting.map(|(slot, _)| DrawSlot(slot))
    }

    pub(crate) fn arrive(&mut self, slot: DrawSlot, accepted: AcceptedUpdate) {
        debug_assert!(!self.has_arrived(slot), "an update counts once");
        self.put(slot, SlotAnswer::Arrived(accepted));
    }

    /// Stops waiting for this slot, unless its update is in already.
    pub(crate) fn give_up(&mut self, slot: DrawSlot, absence: Absence) {
        if !self.has_arrived(slot) {
            self.put(slot, SlotAnswer::Absent(absence));
        }
    }

    fn await_again(&mut self, slot: DrawSlot) {
        if self.answers[slot.0] == SlotAnswer::Absent(Absence::Disconnected) {
            self.put(slot, SlotAnswer::Waiting);
        }
    }

    /// Stops waiting for anything of a node that has not come in.
    pub(crate) fn leave(&mut self, node: NodeIndex, absence: Absence) {
        if let Some(slot) = self.draw.slot(node) {
            self.give_up(slot, absence);
        }
        if let Some(place) = self.draw.measure_place(node) {
            self.measurements.give_up(place, absence);
        }
    }

    /// Waits again for a node that is back in time.
    pub(crate) fn rejoin(&mut self, node: NodeIndex) {
        if let Some(slot) = self.draw.slot(node) {
            self.await_again(slot);
        }
        if let Some(place) = self.draw.measure_place(node) {
            self.measurements.await_again(place);
        }
    }

    /// Nodes from which anything is still expected.
    pub(crate) fn awaited_nodes(&self) -> Vec<NodeIndex> {
        let drawn = self.awaited().map(|slot| self.draw.node(slot));
        let mut nodes: Vec<NodeIndex> = drawn.chain(self.awaited_measurements()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Nodes whose reference gradient is still expected.
    pub(crate) fn awaited_measurements(&self) -> impl Iterator<Item = NodeIndex> {
        let nodes = self.draw.measure().map_or(&[][..], |measure| &measure.nodes);
        let waiting = nodes.iter().enumerate().filter(|(place, _)| self.measurements.is_awaited(*place));
        waiting.map(|(_, node)| *node)
    }

    /// The deadline has passed.
    pub(crate) fn expire(&mut self) {
        self.measurements.expire();
        for answer in self.answers.iter_mut().filter(|answer| matches!(answer, SlotAnswer::Waiting)) {
            *answer = SlotAnswer::Absent(Absence::Missed);
        }
        self.waiting = 0;
    }

    /// The draw, the answer of each slot, and those to the requests for a reference gradient.
    pub(crate) fn into_answers(self) -> (Draw, Tick, Vec<SlotAnswer>, Vec<MeasureAnswer>) {
        (self.draw, self.opened, self.answers, self.measurements.into_answers())
    }

    fn put(&mut self, slot: DrawSlot, answer: SlotAnswer) {
        let before = matches!(self.answers[slot.0], SlotAnswer::Waiting);
        let after = matches!(answer, SlotAnswer::Waiting);
        self.waiting = self.waiting + usize::from(after) - usize::from(before);
        self.answers[slot.0] = answer;
    }
}
