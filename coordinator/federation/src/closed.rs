//! A closed round: recorded, shown and audited.

use std::collections::BTreeMap;

use evenhand_fairness::StopVerdict;
use evenhand_protocol::identity::{Digest, NodeId};
use evenhand_protocol::message::{Account, Declined, Measured, Phase, Refusal, Update, Why};
use serde::{Deserialize, Serialize};

use crate::admission::{AcceptedUpdate, OnlineLoss};
use crate::guard::Intervention;
use crate::index::NodeIndex;
use crate::input::Tick;
use crate::measuring::{AcceptedMeasurement, MeasureResponse};
use crate::weights::Weights;

/// The figures of one round: all that reports, dashboards and audits need.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClosedRound {
    /// Its number, from 1.
    pub round: u32,
    /// Exploring, exploiting or running.
    pub phase: Phase,
    /// Time at which the nodes were asked.
    pub opened: Tick,
    /// Time at which the last answer was in, or the deadline passed.
    pub closed: Tick,
    /// Digest of θ_{t−1}, which the asked nodes received.
    pub weights_before: Digest,
    /// Digest of θ_t; the same if no update arrived.
    pub weights_after: Digest,
    /// Digest of all models of single nodes, by index; none where the strategy gives them none.
    pub node_models_after: Option<Digest>,
    /// β.
    pub temperature: f64,
    /// Σ pᵢ · loss of node i; none if no update arrived.
    pub loss: Option<f64>,
    /// The reason why contributions were not measured, though they were wanted.
    pub unmeasured: Option<String>,
    /// Intervention of the model's guard.
    pub intervention: Option<Intervention>,
    /// The verdict of the stop rule while exploring and running, of the drift test while exploiting.
    pub verdict: Option<StopVerdict>,
    /// Tested nodes that the stop rule had to leave out.
    pub untested: Vec<NodeIndex>,
    /// Every enrolled node, by [`NodeIndex`].
    pub nodes: Vec<NodeRound>,
    /// Refusals of senders that are not enrolled.
    pub unknown_refusals: BTreeMap<Refusal, u32>,
}

impl ClosedRound {
    /// The nodes that were asked, and thus received θ_{t−1}.
    pub fn asked(&self) -> impl Iterator<Item = &NodeRound> {
        self.nodes.iter().filter(|node| node.was_asked())
    }

    /// φ as a row of a history: 0 where nothing was measured.
    pub(crate) fn contributions(&self) -> Vec<f64> {
        self.nodes.iter().map(|node| node.contribution.unwrap_or(0.0)).collect()
    }

    /// Number of updates that counted.
    pub fn arrived(&self) -> usize {
        self.nodes.iter().filter(|node| matches!(node.response, NodeResponse::Arrived { .. })).count()
    }

    /// The verdict in a sentence, with the names of nodes that were left out.
    pub fn verdict_text(&self) -> Option<String> {
        let mut text = self.verdict.as_ref()?.reason.to_string();
        let names = self.untested.iter().filter_map(|node| self.nodes.get(node.get()));
        let names: Vec<&str> = names.map(|node| node.node.as_str()).collect();
        if !names.is_empty() {
            text += &format!("; not tested: {}", names.join(", "));
        }
        Some(text)
    }
}

/// A closed round with the models and updates from which an audit recomputes it.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundEvidence {
    /// The figures.
    pub round: ClosedRound,
    /// θ_t: for the operator, never for the wire.
    pub weights: Weights,
    /// By index: every node's model, where the strategy gives it one; not for the wire either.
    pub node_models: Vec<Weights>,
    /// The updates that counted.
    pub updates: Vec<(NodeIndex, AcceptedUpdate)>,
    /// The reference gradients that came in.
    pub measurements: Vec<(NodeIndex, AcceptedMeasurement)>,
}

/// The messages of a round from which it is replayed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReceivedRound {
    /// The updates that counted, by index.
    pub updates: Vec<(NodeIndex, Update)>,
    /// The reference gradients, by index.
    pub measurements: Vec<(NodeIndex, Measured)>,
}

impl RoundEvidence {
    /// The messages that counted, as they were received.
    pub fn received(&self) -> ReceivedRound {
        let round = self.round.round;
        ReceivedRound {
            updates: self
                .updates
                .iter()
                .map(|(node, accepted)| (*node, accepted.to_message(round)))
                .collect(),
            measurements: self
                .measurements
                .iter()
                .map(|(node, accepted)| (*node, accepted.to_message(round)))
                .collect(),
        }
    }
}

/// One node in one round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeRound {
    /// The node's name.
    pub node: NodeId,
    /// The reason why it was asked, or not.
    pub why: Why,
    /// Its response.
    pub response: NodeResponse,
    /// Its response to the request for a reference gradient.
    pub measured: MeasureResponse,
    /// True if its answers are those of another node too: the twins share the odds of one.
    pub has_twin: bool,
    /// φᵢ,ₜ, if it was measured.
    pub contribution: Option<f64>,
    /// Standard error of φᵢ,ₜ, where it is known.
    pub contribution_error: Option<f64>,
    /// ψᵢ after this round.
    pub standing: f64,
    /// Standard error of ψᵢ.
    pub standing_error: f64,
    /// ϱᵢ in this round; uniform while exploring.
    pub sampling_probability: f64,
    /// Rounds since it last received the model.
    pub staleness: u32,
    /// The round in which it last received the model.
    pub last_drawn: Option<u32>,
    /// Times it received the model.
    pub drawn: u32,
    /// The round in or after which the operator removed it.
    pub removed: Option<u32>,
    /// Refusals of its messages since the round before.
    pub refusals: BTreeMap<Refusal, u32>,
}

impl NodeRound {
    /// True if it received θ_{t−1} in this round.
    pub fn was_asked(&self) -> bool {
        matches!(self.why, Why::Exploring | Why::Drawn | Why::Newcomer)
    }

    /// The same as a message to its owner.
    pub(crate) fn account(&self, round: u32) -> Account {
        Account {
            round,
            standing: self.standing,
            standing_error: self.standing_error,
            sampling_probability: self.sampling_probability,
            staleness: self.staleness,
            last_drawn: self.last_drawn,
            drawn: self.drawn,
            why: self.why,
        }
    }
}

/// A node's response in a round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum NodeResponse {
    /// Its update counted.
    Arrived {
        /// Samples behind it, as reported.
        samples: u32,
        /// pᵢ: its share of the samples that count.
        weight: f64,
        /// Loss of θ_{t−1} on its batch.
        loss: f32,
        /// The loss of its own forecasts since its last update.
        online: Option<OnlineLoss>,
        /// ‖Δθᵢ‖ as received.
        norm: f64,
    },
    /// It was asked and declined.
    Declined(Declined),
    /// Its answer was refused.
    Refused(Refusal),
    /// It was asked and went offline.
    Disconnected,
    /// It was asked and did not answer by the deadline.
    Missed,
    /// It was not asked.
    NotAsked,
}
