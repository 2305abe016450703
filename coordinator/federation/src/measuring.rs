//! The measurements of one round: whom to ask for a reference gradient, and what has come in.

use evenhand_protocol::codec::{Bf16, CodecError};
use evenhand_protocol::message::{Declined, LossKind, MeasureRequest, Measured, Refusal, SkillPermille};
use evenhand_protocol::reference::sketch_dimension;
use serde::{Deserialize, Serialize};

use crate::config::Rules;
use crate::index::NodeIndex;
use crate::round::Absence;

/// The nodes that are asked for a reference gradient in one round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct MeasureDraw {
    /// Seed of the reference weights.
    pub(crate) seed: u64,
    /// Every present node, ascending.
    pub(crate) nodes: Vec<NodeIndex>,
}

impl MeasureDraw {
    /// The request to each of these nodes.
    pub(crate) fn request(&self, round: u32, rules: &Rules, deadline_ms: u32) -> MeasureRequest {
        let loss: LossKind = rules.training.loss;
        MeasureRequest {
            round,
            seed: self.seed,
            dimension: rules.continuous.sketch_dimension,
            loss,
            samples_max: rules.training.samples_max,
            deadline_ms,
        }
    }
}

/// A reference gradient that may count: of the right length, finite, of samples within the limit.
#[derive(Debug, Clone, PartialEq)]
pub struct AcceptedMeasurement {
    vector: Vec<f32>,
    samples: u32,
    skill: Option<SkillPermille>,
}

impl AcceptedMeasurement {
    /// Accepts `measured` for a model of `parameters`, or says why not. Its sender and its round were checked before.
    pub(crate) fn admit(measured: &Measured, rules: &Rules, parameters: usize) -> Result<Self, Refusal> {
        if measured.samples == 0 || measured.samples > rules.training.samples_max {
            return Err(Refusal::Samples);
        }
        let dimension = sketch_dimension(parameters, rules.continuous.sketch_dimension as usize);
        let vector = measured.vector.decode(dimension).map_err(|error| match error {
            CodecError::Dimension { .. } => Refusal::Dimension,
            CodecError::Structure(_) => Refusal::Malformed,
        })?;
        if vector.iter().any(|value| !value.is_finite()) {
            return Err(Refusal::NotFinite);
        }
        Ok(Self { vector, samples: measured.samples, skill: measured.skill })
    }

    /// The gradient, or its sketch.
    pub fn vector(&self) -> &[f32] {
        &self.vector
    }

    /// Samples behind it.
    pub fn samples(&self) -> u32 {
        self.samples
    }

    /// Skill of the node's forecasts, as it says.
    pub fn skill(&self) -> Option<SkillPermille> {
        self.skill
    }

    /// The message as received: nothing is lost by encoding it again.
    pub(crate) fn to_message(&self, round: u32) -> Measured {
        let vector = Bf16::encode(&self.vector);
        Measured { round, samples: self.samples, skill: self.skill, vector }
    }
}

/// A node's response to the request for a reference gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MeasureResponse {
    /// It was not asked.
    NotAsked,
    /// Its gradient was measured.
    Measured {
        /// Samples behind it.
        samples: u32,
        /// Skill of its forecasts, as it says.
        skill: Option<SkillPermille>,
    },
    /// It sent one of its earlier answers again, which counts as nothing.
    Repeated,
    /// It was drawn as well and sent no update: its gradient counts as nothing.
    Withheld,
    /// It declined.
    Declined(Declined),
    /// Its answer was refused.
    Refused(Refusal),
    /// It went offline.
    Disconnected,
    /// It did not answer by the deadline.
    Missed,
}

impl From<Absence> for MeasureResponse {
    fn from(absence: Absence) -> Self {
        match absence {
            Absence::Declined(reason) => Self::Declined(reason),
            Absence::Refused(refusal) => Self::Refused(refusal),
            Absence::Disconnected => Self::Disconnected,
            Absence::Missed => Self::Missed,
        }
    }
}

/// One asked node's answer so far.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MeasureAnswer {
    Waiting,
    Arrived(AcceptedMeasurement),
    Absent(Absence),
}

/// The answers of an open round, in the order of [`MeasureDraw::nodes`].
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct OpenMeasurements {
    answers: Vec<MeasureAnswer>,
    waiting: usize,
}

impl OpenMeasurements {
    pub(crate) fn new(draw: Option<&MeasureDraw>) -> Self {
        let waiting = draw.map_or(0, |draw| draw.nodes.len());
        Self { answers: vec![MeasureAnswer::Waiting; waiting], waiting }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.waiting == 0
    }

    pub(crate) fn is_awaited(&self, place: usize) -> bool {
        matches!(self.answers[place], MeasureAnswer::Waiting)
    }

    /// Whether no answer is expected any more, and none is in.
    pub(crate) fn is_absent(&self, place: usize) -> bool {
        matches!(self.answers[place], MeasureAnswer::Absent(_))
    }

    pub(crate) fn any_arrived(&self) -> bool {
        self.answers.iter().any(|answer| matches!(answer, MeasureAnswer::Arrived(_)))
    }

    pub(crate) fn has_arrived(&self, place: usize) -> bool {
        matches!(self.answers[place], MeasureAnswer::Arrived(_))
    }

    pub(crate) fn arrive(&mut self, place: usize, accepted: AcceptedMeasurement) {
        self.put(place, MeasureAnswer::Arrived(accepted));
    }

    /// Stops waiting for a node, unless its answer is in already.
    pub(crate) fn give_up(&mut self, place: usize, absence: Absence) {
        if !self.has_arrived(place) {
            self.put(place, MeasureAnswer::Absent(absence));
        }
    }

    /// Waits again for a node that was disconnected and is back in time.
    pub(crate) fn await_again(&mut self, place: usize) {
        if self.answers[place] == MeasureAnswer::Absent(Absence::Disconnected) {
            self.put(place, MeasureAnswer::Waiting);
        }
    }

    pub(crate) fn expire(&mut self) {
        for answer in self.answers.iter_mut().filter(|answer| matches!(answer, MeasureAnswer::Waiting)) {
            *answer = MeasureAnswer::Absent(Absence::Missed);
        }
        self.waiting = 0;
    }

    pub(crate) fn into_answers(self) -> Vec<MeasureAnswer> {
        self.answers
    }

    fn put(&mut self, place: usize, answer: MeasureAnswer) {
        let before = self.is_awaited(place);
        let after = matches!(answer, MeasureAnswer::Waiting);
        self.waiting = self.waiting + usize::from(after) - usize::from(before);
        self.answers[place] = answer;
    }
}
