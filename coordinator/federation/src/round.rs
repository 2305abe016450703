//! A round under way: the nodes that were asked, and their answers so far.

use evenhand_protocol::message::{Declined, Refusal};
use serde::{Deserialize, Serialize};

use crate::admission::AcceptedUpdate;
use crate::attempt::BeforeDraw;
use crate::draw::Draw;
use crate::index::DrawSlot;
use crate::index::NodeIndex;
use crate::input::Tick;
use crate::measuring::{MeasureAnswer, OpenMeasurements};
use crate::roster::Roster;

/// Between two rounds, or in one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum RoundStage {
    /// The next round opens not before `until`, and not without a node.
    Resting { until: Tick },
    /// Updates are coming in.
    Open(Box<OpenRound>),
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
            Self::Open(round) => Self::Open(Box::new(OpenRound::from(SavedRound::from(&**round)))),
            resting => resting.clone(),
        }
    }
}

/// Progress of a stage.
pub(crate) enum RoundProgress {
    Resting { until: Tick },
    Open,
    Over(Box<OpenRound>),
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
    deadline: Option<RoundDeadline>,
    /// The state before the draw, under the policy by which a round that nobody answers is none.
    pub(crate) before: Option<Box<BeforeDraw>>,
}

/// The deadline of a round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RoundDeadline {
    /// When a drawn node that has not answered is overdue: somebody else is drawn, and its update still counts. None once that
    /// has passed.
    overdue: Option<Tick>,
    /// When the round goes on without the nodes that have not answered.
    end: Tick,
}

impl RoundDeadline {
    /// So many milliseconds from `now` on; half of them until nodes are overdue.
    pub(crate) fn new(now: Tick, deadline_ms: u32) -> Self {
        Self { overdue: Some(now.plus_ms(deadline_ms / 2)), end: now.plus_ms(deadline_ms) }
    }
}

/// A round as it is saved.
#[derive(Serialize, Deserialize)]
struct SavedRound {
    draw: Draw,
    opened: Tick,
    before: Option<Box<BeforeDraw>>,
}

impl From<SavedRound> for OpenRound {
    fn from(SavedRound { draw, opened, before }: SavedRound) -> Self {
        Self { before, ..Self::new(draw, opened, None) }
    }
}

impl From<&OpenRound> for SavedRound {
    fn from(OpenRound { draw, opened, before, .. }: &OpenRound) -> Self {
        Self { draw: draw.clone(), opened: *opened, before: before.clone() }
    }
}

impl From<OpenRound> for SavedRound {
    fn from(round: OpenRound) -> Self {
        Self::from(&round)
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
    pub(crate) fn new(draw: Draw, opened: Tick, deadline: Option<RoundDeadline>) -> Self {
        let waiting = draw.asked().len();
        let answers = vec![SlotAnswer::Waiting; waiting];
        let measurements = OpenMeasurements::new(draw.measure());
        Self { answers, waiting, measurements, draw, opened, deadline, before: None }
    }

    pub(crate) fn deadline(&self) -> Option<Tick> {
        self.deadline.map(|deadline| deadline.end)
    }

    pub(crate) fn set_deadline(&mut self, deadline: RoundDeadline) {
        self.deadline = Some(deadline);
    }

    /// Time at which something is to be done without an answer: drawn nodes are overdue, where that matters, or the round is over.
    pub(crate) fn alarm(&self) -> Option<Tick> {
        let RoundDeadline { overdue, end } = self.deadline?;
        let matters = self.before.is_some() && self.waiting > 0;
        Some(overdue.filter(|_| matters).unwrap_or(end))
    }

    /// Takes note of the time: drawn nodes may be overdue.
    pub(crate) fn tick(&mut self, now: Tick) {
        if let Some(deadline) = &mut self.deadline {
            deadline.overdue.take_if(|overdue| now >= *overdue);
        }
    }

    /// Whether a node that is asked now could still answer.
    pub(crate) fn has_time_left(&self, now: Tick) -> bool {
        self.deadline().is_some_and(|end| now < end)
    }

    /// Slots from which no update is to be expected, or none in time.
    pub(crate) fn slots_missing(&self) -> usize {
        let overdue = self.deadline.is_some_and(|deadline| deadline.overdue.is_none());
        let is_missing = |answer: &&SlotAnswer| match answer {
            SlotAnswer::Arrived(_) => false,
            SlotAnswer::Waiting => overdue,
            SlotAnswer::Absent(_) => true,
        };
        self.answers.iter().filter(is_missing).count()
    }

    /// Whether a node was asked for a reference gradient and has not failed to send it.
    pub(crate) fn may_measure(&self, node: NodeIndex) -> bool {
        self.draw.measure_place(node).is_some_and(|place| !self.measurements.is_absent(place))
    }

    /// Draws one more node, in place of another.
    pub(crate) fn substitute(&mut self, node: NodeIndex, roster: &mut Roster) {
        let slot = self.draw.substitute(node, roster);
        self.answers.insert(slot.0, SlotAnswer::Waiting);
        self.waiting += 1;
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

    /// Whether nothing that counts has come in.
    pub(crate) fn is_unanswered(&self) -> bool {
        let arrived = self.answers.iter().any(|answer| matches!(answer, SlotAnswer::Arrived(_)));
        !arrived && !self.measurements.any_arrived()
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
