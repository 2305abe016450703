//! What is known of a round when it is over.

use std::collections::BTreeMap;

use evenhand_protocol::identity::{Digest, NodeId};
use evenhand_protocol::message::{Account, Declined, Phase, Refusal, Update, Why};
use serde::{Deserialize, Serialize};

use super::admission::{AcceptedUpdate, OnlineLoss};
use super::input::Tick;
use super::weights::Weights;
use evenhand_fairness::StopVerdict;

/// A round that is over, with what it was made of.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundEvidence {
    /// The figures.
    pub record: ClosedRound,
    /// θ_t: for the operator's eyes, never for the wire.
    pub weights: Weights,
    /// By column: every node's own model, where the strategy gives it one; not for the wire either.
    pub own: Vec<Weights>,
    /// The updates that counted, with their column in `record.nodes`.
    pub updates: Vec<(usize, AcceptedUpdate)>,
}

impl RoundEvidence {
    /// The updates that counted as they were received, for whoever checks the round.
    pub fn received(&self) -> Vec<(usize, Update)> {
        let message =
            |(column, accepted): &(usize, AcceptedUpdate)| (*column, accepted.received(self.record.round));
        self.updates.iter().map(message).collect()
    }
}

/// The figures of one round: all that reports, dashboards and audits need.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClosedRound {
    /// Its number, from 1.
    pub round: u32,
    /// Exploring or exploiting.
    pub phase: Phase,
    /// When the nodes were asked.
    pub opened: Tick,
    /// When the last was in, or the deadline passed.
    pub closed: Tick,
    /// Digest of θ_{t−1}, which the drawn nodes received.
    pub weights_before: Digest,
    /// Digest of θ_t; the same if no update arrived.
    pub weights_after: Digest,
    /// Digest of all models that nodes have of their own, by column; none where the strategy gives them none.
    pub own_after: Option<Digest>,
    /// β.
    pub temperature: f64,
    /// Σ pᵢ · loss of node i; none if no update arrived.
    pub loss: Option<f64>,
    /// Why contributions were not measured, though they were to be.
    pub unmeasured: Option<String>,
    /// What the stop rule said, while exploring.
    pub verdict: Option<Judgement>,
    /// Every enrolled node; its position is its column for good.
    pub nodes: Vec<NodeRound>,
    /// What came from senders that are not enrolled, and was refused.
    pub strangers: BTreeMap<Refusal, u32>,
}

impl ClosedRound {
    /// The nodes that were asked, and thus received θ_{t−1}.
    pub fn asked(&self) -> impl Iterator<Item = &NodeRound> {
        self.nodes.iter().filter(|node| node.was_asked())
    }

    /// φ as a row of a history: 0 where nothing was measured.
    pub(super) fn contributions(&self) -> Vec<f64> {
        self.nodes.iter().map(|node| node.contribution.unwrap_or(0.0)).collect()
    }

    /// How many updates counted.
    pub fn arrived(&self) -> usize {
        self.nodes.iter().filter(|node| matches!(node.fate, NodeResponse::Arrived { .. })).count()
    }
}

/// One node in one round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeRound {
    /// Who.
    pub node: NodeId,
    /// Why it was asked, or not.
    pub why: Why,
    /// What became of it.
    pub fate: NodeResponse,
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
    /// When it last received the model.
    pub last_drawn: Option<u32>,
    /// How often it received the model.
    pub drawn: u32,
    /// The round in or after which the operator shut it out.
    pub removed: Option<u32>,
    /// What it sent since the round before, and was refused.
    pub refusals: BTreeMap<Refusal, u32>,
}

impl NodeRound {
    /// Whether it received θ_{t−1} in this round.
    pub fn was_asked(&self) -> bool {
        matches!(self.why, Why::Exploring | Why::Drawn | Why::Newcomer)
    }

    /// The same for its owner.
    pub(super) fn account(&self, round: u32) -> Account {
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

/// What became of a node in a round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum NodeResponse {
    /// Its update counted.
    Arrived {
        /// Samples behind it, as it said.
        samples: u32,
        /// pᵢ: its share of the samples that count.
        share: f64,
        /// Loss of θ_{t−1} on its batch.
        loss: f32,
        /// Its own forecasts since its last update.
        online: Option<OnlineLoss>,
        /// ‖Δθᵢ‖ as it arrived.
        norm: f64,
    },
    /// It was asked and could not.
    Declined(Declined),
    /// What it sent was refused.
    Refused(Refusal),
    /// It was asked and died.
    Disconnected,
    /// It was asked and not heard of by the deadline.
    Missed,
    /// It was not asked.
    NotAsked,
}

/// What the stop rule said; see [`StopVerdict`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// Hotelling's T².
    pub t2: Option<f64>,
    /// T² as an F statistic.
    pub f: Option<f64>,
    /// p.
    pub p_value: Option<f64>,
    /// p of the test for a slow trend (calibrated rule only).
    pub trend_p_value: Option<f64>,
    /// The widest half-width of a standing (calibrated rule only).
    pub half_width: Option<f64>,
    /// Whether exploring ends.
    pub stop: bool,
    /// Why, or why not yet.
    pub reason: String,
}

impl From<StopVerdict> for Judgement {
    fn from(verdict: StopVerdict) -> Self {
        let StopVerdict { t2, f, p_value, trend_p_value, half_width, stop, reason, .. } = verdict;
        Self { t2, f, p_value, trend_p_value, half_width, stop, reason: reason.to_string() }
    }
}
