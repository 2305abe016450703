//! A round whose answers are complete: the first value of the pipeline.

use evenhand_protocol::message::Why;

use crate::admission::AcceptedUpdate;
use crate::closed::NodeResponse;
use crate::config::AdmissionConfig;
use crate::draw::Draw;
use crate::index::NodeIndex;
use crate::input::Tick;
use crate::measuring::{AcceptedMeasurement, MeasureAnswer, MeasureResponse};
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
    /// The reference gradients that came in, by place in the draw.
    measurements: Vec<Option<AcceptedMeasurement>>,
    /// By place: the response to the request for a reference gradient.
    measure_responses: Vec<MeasureResponse>,
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
        let (draw, opened, answers, measured) = round.into_answers();
        let arrived = draw.asked().iter().zip(&answers).filter_map(|(asked, answer)| match answer {
            SlotAnswer::Arrived(accepted) => Some((asked.why, accepted)),
            _ => None,
        });
        let updates = arrived.clone().map(|(_, accepted)| accepted);
        // Newcomers are beside the draw: they are held against the drawn nodes, not the other way round.
        let drawn = arrived.filter(|(why, _)| *why != Why::Newcomer).map(|(_, accepted)| accepted);
        let RelativeLimits { norm_max, samples_max, product_max } = match drawn.clone().next() {
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
                    update.clip_norm(norm_max.min(product_max / counted(&update)));
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
        let (measurements, measure_responses) = measured.into_iter().map(measurement).unzip();
        Self { draw, opened, arrivals, responses, measurements, measure_responses }
    }

    /// Nodes that were asked for a reference gradient, ascending.
    pub(crate) fn measured_nodes(&self) -> &[NodeIndex] {
        self.draw.measure().map_or(&[], |measure| &measure.nodes)
    }

    /// The reference gradient of a node, if it came in and counts.
    pub(crate) fn gradient(&self, node: NodeIndex) -> Option<&[f32]> {
        let place = self.draw.measure_place(node)?;
        let counts = matches!(self.measure_responses[place], MeasureResponse::Measured { .. });
        self.measurements[place].as_ref().filter(|_| counts).map(AcceptedMeasurement::vector)
    }

    /// A node's response to the request for a reference gradient.
    pub(crate) fn measure_response(&self, node: NodeIndex) -> MeasureResponse {
        self.draw.measure_place(node).map_or(MeasureResponse::NotAsked, |place| self.measure_responses[place])
    }

    pub(crate) fn set_measure_response(&mut self, node: NodeIndex, response: MeasureResponse) {
        if let Some(place) = self.draw.measure_place(node) {
            self.measure_responses[place] = response;
        }
    }

    /// Discounts the reference gradients of nodes that were given the latest model and sent no update.
    pub(crate) fn withhold(&mut self) {
        let drawn: Vec<NodeIndex> = self.draw.asked().iter().map(|asked| asked.node).collect();
        for node in drawn {
            if !self.has_arrived(node)
                && matches!(self.measure_response(node), MeasureResponse::Measured { .. })
            {
                self.set_measure_response(node, MeasureResponse::Withheld);
            }
        }
    }

    /// True if nothing at all came in.
    pub(crate) fn is_empty(&self) -> bool {
        self.arrivals.is_empty() && self.measurements.iter().all(Option::is_none)
    }

    /// The reference gradients that came in.
    pub(crate) fn take_measurements(&mut self) -> Vec<(NodeIndex, AcceptedMeasurement)> {
        let measurements = std::mem::take(&mut self.measurements);
        let of = self.measured_nodes().to_vec().into_iter().zip(measurements);
        of.filter_map(|(node, accepted)| Some((node, accepted?))).collect()
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

    /// True if the update of a node counts.
    pub(crate) fn has_arrived(&self, node: NodeIndex) -> bool {
        self.arrivals.binary_search_by_key(&node, |arrival| arrival.node).is_ok()
    }

    /// True if any node was asked for this reason.
    pub(crate) fn asked_for(&self, why: Why) -> bool {
        self.draw.asked().iter().any(|asked| asked.why == why)
    }

    /// Σ pᵢ · loss of node i; none without arrivals.
    pub(crate) fn loss(&self) -> Option<f64> {
        let losses = self.arrivals.iter().map(|arrival| arrival.weight * f64::from(arrival.update.loss()));
        (!self.arrivals.is_empty()).then(|| losses.sum())
    }
}

fn measurement(answer: MeasureAnswer) -> (Option<AcceptedMeasurement>, MeasureResponse) {
    match answer {
        MeasureAnswer::Arrived(accepted) => {
            let response = MeasureResponse::Measured { samples: accepted.samples(), skill: accepted.skill() };
            (Some(accepted), response)
        }
        MeasureAnswer::Absent(absence) => (None, absence.into()),
        MeasureAnswer::Waiting => (None, MeasureResponse::Missed),
    }
}
