//! One round: who was asked, and what became of each.

use evenhand_protocol::message::{Declined, Refusal, Why};
use serde::{Deserialize, Serialize};

use super::admission::{AcceptedUpdate, Loudness};
use super::draw::Draw;
use super::input::Tick;
use super::record::NodeResponse;
use super::settings::AdmissionConfig;

/// Between two rounds, or in one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Stage {
    /// The next round begins not before `until`, and not without a node.
    Resting { until: Tick },
    /// Updates are coming in.
    Open(Round),
}

impl Stage {
    pub(super) fn round(&self) -> Option<&Round> {
        match self {
            Self::Open(round) => Some(round),
            Self::Resting { .. } => None,
        }
    }

    pub(super) fn round_mut(&mut self) -> Option<&mut Round> {
        match self {
            Self::Open(round) => Some(round),
            Self::Resting { .. } => None,
        }
    }

    /// The stage as it is saved: nodes send again what had arrived.
    pub(super) fn saved(&self) -> Self {
        match self {
            Self::Open(round) => Self::Open(Round::new(round.draw.clone(), round.opened, None)),
            resting => resting.clone(),
        }
    }
}

/// A round that is under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Reopened", into = "Reopened")]
pub(super) struct Round {
    pub(super) draw: Draw,
    slots: Vec<Slot>,
    waiting: usize,
    opened: Tick,
    /// None after a restore, until the link stands: nobody can be late before it was asked.
    deadline: Option<Tick>,
}

/// A round as it is saved.
#[derive(Serialize, Deserialize)]
struct Reopened {
    draw: Draw,
    opened: Tick,
}

impl From<Reopened> for Round {
    fn from(Reopened { draw, opened }: Reopened) -> Self {
        Self::new(draw, opened, None)
    }
}

impl From<Round> for Reopened {
    fn from(Round { draw, opened, .. }: Round) -> Self {
        Self { draw, opened }
    }
}

/// One asked member's answer so far.
#[derive(Debug, Clone, PartialEq)]
enum Slot {
    Waiting,
    Arrived(AcceptedUpdate),
    Out(Absence),
}

/// Why nothing is to be expected from a member any more. All but an arrival can be mended in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Absence {
    Declined(Declined),
    Refused(Refusal),
    Disconnected,
    Missed,
}

impl Round {
    pub(super) fn new(draw: Draw, opened: Tick, deadline: Option<Tick>) -> Self {
        let waiting = draw.asked().len();
        Self { slots: vec![Slot::Waiting; waiting], waiting, draw, opened, deadline }
    }

    pub(super) fn deadline(&self) -> Option<Tick> {
        self.deadline
    }

    pub(super) fn set_deadline(&mut self, deadline: Tick) {
        self.deadline = Some(deadline);
    }

    /// Whether nothing more is to be waited for.
    pub(super) fn is_over(&self) -> bool {
        self.waiting == 0
    }

    pub(super) fn has_arrived(&self, place: usize) -> bool {
        matches!(self.slots[place], Slot::Arrived(_))
    }

    /// Places from which an answer is still expected.
    pub(super) fn awaited(&self) -> impl Iterator<Item = usize> {
        let waiting = self.slots.iter().enumerate().filter(|(_, slot)| matches!(slot, Slot::Waiting));
        waiting.map(|(place, _)| place)
    }

    pub(super) fn arrive(&mut self, place: usize, accepted: AcceptedUpdate) {
        debug_assert!(!self.has_arrived(place), "an update counts once");
        self.put(place, Slot::Arrived(accepted));
    }

    /// Nothing more from this place, unless its update is in already.
    pub(super) fn give_up(&mut self, place: usize, absence: Absence) {
        if !self.has_arrived(place) {
            self.put(place, Slot::Out(absence));
        }
    }

    /// A member that had died is back in time.
    pub(super) fn await_again(&mut self, place: usize) {
        if self.slots[place] == Slot::Out(Absence::Disconnected) {
            self.put(place, Slot::Waiting);
        }
    }

    /// The deadline has passed.
    pub(super) fn expire(&mut self) {
        for slot in self.slots.iter_mut().filter(|slot| matches!(slot, Slot::Waiting)) {
            *slot = Slot::Out(Absence::Missed);
        }
        self.waiting = 0;
    }

    fn put(&mut self, place: usize, slot: Slot) {
        let before = matches!(self.slots[place], Slot::Waiting);
        let after = matches!(slot, Slot::Waiting);
        self.waiting = self.waiting + usize::from(after) - usize::from(before);
        self.slots[place] = slot;
    }

    /// What came of it, with nobody louder beside the others than `limits` allow.
    pub(super) fn harvest(self, limits: &AdmissionConfig) -> Harvest {
        let arrivals = self.draw.asked().iter().zip(&self.slots).filter_map(|(asked, slot)| match slot {
            Slot::Arrived(accepted) => Some((asked.why, accepted)),
            _ => None,
        });
        let arrived = arrivals.clone().map(|(_, accepted)| accepted);
        // Newcomers are beside the draw: they are held against who was drawn, not the other way round.
        let drawn = arrivals.filter(|(why, _)| *why != Why::Newcomer).map(|(_, accepted)| accepted);
        let Loudness { length_max, samples_max } = match drawn.clone().next() {
            Some(_) => Loudness::of(drawn, limits),
            None => Loudness::of(arrived.clone(), limits),
        };
        let counted = |accepted: &AcceptedUpdate| f64::from(accepted.samples()).min(samples_max);
        let total: f64 = arrived.map(counted).sum();
        let mut harvest = Harvest {
            opened: self.opened,
            arrivals: Vec::with_capacity(self.slots.len()),
            shares: Vec::with_capacity(self.slots.len()),
            fates: Vec::with_capacity(self.slots.len()),
            draw: self.draw,
        };
        for (asked, slot) in harvest.draw.asked().iter().zip(self.slots) {
            let fate = match slot {
                Slot::Arrived(mut accepted) => {
                    accepted.shorten(length_max);
                    let share = counted(&accepted) / total;
                    let fate = NodeResponse::Arrived {
                        samples: accepted.samples(),
                        share,
                        loss: accepted.loss(),
                        online: accepted.online(),
                        norm: accepted.norm(),
                    };
                    harvest.arrivals.push((asked.member, accepted));
                    harvest.shares.push(share);
                    fate
                }
                Slot::Out(Absence::Declined(reason)) => NodeResponse::Declined(reason),
                Slot::Out(Absence::Refused(refusal)) => NodeResponse::Refused(refusal),
                Slot::Out(Absence::Disconnected) => NodeResponse::Disconnected,
                Slot::Out(Absence::Missed) | Slot::Waiting => NodeResponse::Missed,
            };
            harvest.fates.push(fate);
        }
        harvest
    }
}

/// A round's yield, by column.
pub(super) struct Harvest {
    pub(super) draw: Draw,
    pub(super) opened: Tick,
    /// Column and update of those that counted, in the order of columns.
    pub(super) arrivals: Vec<(usize, AcceptedUpdate)>,
    /// pᵢ of each arrival: its share of the samples that count.
    pub(super) shares: Vec<f64>,
    /// What became of each asked member.
    pub(super) fates: Vec<NodeResponse>,
}

impl Harvest {
    pub(super) fn updates(&self) -> Vec<&[f32]> {
        self.arrivals.iter().map(|(_, accepted)| accepted.vector()).collect()
    }

    /// Σ pᵢ · loss of node i.
    pub(super) fn loss(&self) -> Option<f64> {
        let losses = self.arrivals.iter().zip(&self.shares);
        (!self.arrivals.is_empty()).then(|| losses.map(|((_, a), share)| share * f64::from(a.loss())).sum())
    }
}
