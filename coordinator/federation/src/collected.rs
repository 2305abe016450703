//! A round whose answers are complete: the first value of the pipeline.

use evenhand_protocol::message::Why;

use crate::admission::AcceptedUpdate;
use crate::closed::NodeResponse;
use crate::config::AdmissionConfig;
use crate::draw::Draw;
use crate::index::NodeIndex;
use crate::input::Tick;
use crate::relative_limits::RelativeLimits;
use crate::round::{Absence, OpenRound, SlotAnswer};

/// The updates that count in a round, each within the limits, and the absences.
pub(crate) struct CollectedRound {
    pub(crate) draw: Draw,
    pub(crate) opened: Tick,
    /// The updates that count, by index.
    pub(crate) arrivals: Vec<Arrival>,
    /// By slot: the response of each asked node.
    pub(crate) responses: Vec<NodeResponse>,
}

/// One update that counts.
pub(crate) struct Arrival {
    pub(crate) node: NodeIndex,
    pub(crate) update: AcceptedUpdate,
    /// pᵢ: its share of the samples that count.
    pub(crate) weight: f64,
}

impl CollectedRound {
    /// Closes the collection: clips what exceeds the relative limits, and weighs each update by its samples.
    pub(crate) fn new(round: OpenRound, limits: &AdmissionConfig) -> Self {
        let (draw, opened, answers) = round.into_answers();
        let arrived = draw.asked().iter().zip(&answers).filter_map(|(asked, answer)| match answer {
            SlotAnswer::Arrived(accepted) => Some((asked.why, accepted)),
            _ => None,
        });
        let updates = arrived.clone().map(|(_, accepted)| accepted);
        // Newcomers are beside the draw: they are held against the drawn nodes, not the other way round.
        let drawn = arrived.filter(|(why, _)| *why != Why::Newcomer).map(|(_, accepted)| accepted);
        let RelativeLimits { norm_max, samples_max } = match drawn.clone().next() {
            Some(_) => RelativeLimits::of(drawn, limits),
            None => RelativeLimits::of(updates.clone(), limits),
        };
        let counted = |accepted: &AcceptedUpdate| f64::from(accepted.samples()).min(samples_max);
        let total: f64 = updates.map(counted).sum();
        let mut arrivals = Vec::with_capacity(answers.len());
        let mut responses = Vec::with_capacity(answers.len());
        for (asked, answer) in draw.asked().iter().zip(answers) {
            responses.push(match answer {
                SlotAnswer::Arrived(mut update) => {
                    update.clip_norm(norm_max);
                    let weight = counted(&update) / total;
                    let response = NodeResponse::Arrived {
                        samples: update.samples(),
                        weight,
                        loss: update.loss(),
                        online: update.online(),
                        norm: update.norm(),
                    };
                    arrivals.push(Arrival { node: asked.node, update, weight });
                    response
                }
                SlotAnswer::Absent(Absence::Declined(reason)) => NodeResponse::Declined(reason),
                SlotAnswer::Absent(Absence::Refused(refusal)) => NodeResponse::Refused(refusal),
                SlotAnswer::Absent(Absence::Disconnected) => NodeResponse::Disconnected,
                SlotAnswer::Absent(Absence::Missed) | SlotAnswer::Waiting => NodeResponse::Missed,
            });
        }
        Self { draw, opened, arrivals, responses }
    }

    /// Δθᵢ of each arrival.
    pub(crate) fn updates(&self) -> Vec<&[f32]> {
        self.arrivals.iter().map(|arrival| arrival.update.vector()).collect()
    }

    /// pᵢ of each arrival.
    pub(crate) fn weights(&self) -> Vec<f64> {
        self.arrivals.iter().map(|arrival| arrival.weight).collect()
    }

    /// Indices of the arrivals, ascending.
    pub(crate) fn nodes(&self) -> Vec<NodeIndex> {
        self.arrivals.iter().map(|arrival| arrival.node).collect()
    }

    /// Whether the update of a node counts.
    pub(crate) fn has_arrived(&self, node: NodeIndex) -> bool {
        self.arrivals.binary_search_by_key(&node, |arrival| arrival.node).is_ok()
    }

    /// Whether any node was asked for this reason.
    pub(crate) fn asked_for(&self, why: Why) -> bool {
        self.draw.asked().iter().any(|asked| asked.why == why)
    }

    /// Σ pᵢ · loss of node i; none without arrivals.
    pub(crate) fn loss(&self) -> Option<f64> {
        let losses = self.arrivals.iter().map(|arrival| arrival.weight * f64::from(arrival.update.loss()));
        (!self.arrivals.is_empty()).then(|| losses.sum())
    }
}
