//! The view of one node.

use std::collections::BTreeMap;

use evenhand_protocol::identity::NodeId;
use evenhand_protocol::message::{Refusal, Why};
use serde::Serialize;

use super::names;
use super::thinned::{AxisStep, MergeLater, RoundAxis, RoundSpan, ThinnedSeries};
use evenhand_federation::{MeasureResponse, NodeResponse, NodeRound};

/// A node in the table of all nodes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeRow {
    /// Its name.
    pub id: NodeId,
    /// True if it is online.
    pub present: bool,
    /// The round in or after which the operator removed it.
    pub removed: Option<u32>,
    /// ψ.
    pub standing: f64,
    /// Its standard error.
    pub standing_error: f64,
    /// ϱ.
    pub probability: f64,
    /// φ, when it was last measured.
    pub contribution: Option<f64>,
    /// Rounds in which it received the model.
    pub drawn: u32,
    /// The round it last did.
    pub last_drawn: Option<u32>,
    /// Rounds since.
    pub staleness: u32,
    /// Mean of that over the rounds since it enrolled.
    pub staleness_mean: f64,
    /// Loss of the model on its batch, when it last sent an update.
    pub loss: Option<f64>,
    /// Skill of its forecasts for its owner over four weeks, as it last said.
    pub skill: Option<f64>,
    /// The reason for which it was asked in the last round, or not.
    pub why: String,
    /// Its response then.
    pub response: String,
    /// Messages refused, over all rounds.
    pub refused: u64,
}

/// Rounds by the response of the node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ResponseCounts {
    /// Its update counted.
    pub arrived: u64,
    /// It declined.
    pub declined: u64,
    /// Its update was refused.
    pub refused: u64,
    /// It disconnected.
    pub disconnected: u64,
    /// The deadline passed.
    pub missed: u64,
}

impl ResponseCounts {
    pub(super) fn count(&mut self, response: NodeResponse) {
        match response {
            NodeResponse::Arrived { .. } => self.arrived += 1,
            NodeResponse::Declined(_) => self.declined += 1,
            NodeResponse::Refused(_) => self.refused += 1,
            NodeResponse::Disconnected => self.disconnected += 1,
            NodeResponse::Missed => self.missed += 1,
            NodeResponse::NotAsked => {}
        }
    }
}

/// One or several neighbouring rounds of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NodeSpan {
    pub(super) drawn: u32,
    standing: f32,
    standing_error: f32,
    staleness: u32,
    /// Sum and number of φ, and of losses.
    contributions: (f32, u32),
    losses: (f32, u32),
}

impl NodeSpan {
    fn new(node: &NodeRound) -> Self {
        Self {
            drawn: u32::from(node.was_asked()),
            standing: node.standing as f32,
            standing_error: node.standing_error as f32,
            staleness: node.staleness,
            contributions: node.contribution.map_or((0.0, 0), |value| (value as f32, 1)),
            losses: loss(node).map_or((0.0, 0), |value| (value as f32, 1)),
        }
    }
}

impl MergeLater for NodeSpan {
    fn merge(&mut self, later: Self) {
        let sum = |a: (f32, u32), b: (f32, u32)| (a.0 + b.0, a.1 + b.1);
        *self = Self {
            drawn: self.drawn + later.drawn,
            staleness: self.staleness.max(later.staleness),
            contributions: sum(self.contributions, later.contributions),
            losses: sum(self.losses, later.losses),
            ..later
        };
    }
}

fn loss(node: &NodeRound) -> Option<f64> {
    match node.response {
        NodeResponse::Arrived { loss, .. } => Some(f64::from(loss)),
        _ => None,
    }
}

/// A stretch of a node's history, as it is shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodePoint {
    /// Its rounds.
    #[serde(flatten)]
    pub span: RoundSpan,
    /// In how many of them it received the model.
    pub drawn: u32,
    /// ψ at the end.
    pub standing: f32,
    /// Its standard error.
    pub standing_error: f32,
    /// The longest wait in them, in rounds.
    pub staleness: u32,
    /// Mean φ.
    pub contribution: Option<f32>,
    /// Mean loss on its batches.
    pub loss: Option<f32>,
}

/// One node with its history.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NodeHistory {
    pub(super) row: NodeRow,
    responses: ResponseCounts,
    refusals: BTreeMap<Refusal, u64>,
    samples: Option<u32>,
    norm: Option<f64>,
    online_loss: Option<f64>,
    staleness_max: u32,
    staleness_sum: u64,
    rounds: u32,
    history: ThinnedSeries<NodeSpan>,
}

/// The page of one node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodePage {
    /// Grows with every change of the view.
    pub version: u64,
    /// Its row in the table of all nodes.
    #[serde(flatten)]
    pub row: NodeRow,
    /// Its rank by standing: 1 for the highest.
    pub rank: usize,
    /// Nodes that are ranked.
    pub of: usize,
    /// Its longest wait, in rounds.
    pub staleness_max: u32,
    /// Rounds by its response.
    pub responses: ResponseCounts,
    /// Messages refused, by reason.
    #[serde(serialize_with = "names::refusals")]
    pub refusals: BTreeMap<Refusal, u64>,
    /// Samples behind its last update.
    pub samples: Option<u32>,
    /// Norm of its last update, as it arrived.
    pub norm: Option<f64>,
    /// Loss of its own forecasts, as last reported.
    pub online_loss: Option<f64>,
    /// Its rounds, oldest first.
    pub history: Vec<NodePoint>,
}

impl NodeHistory {
    pub(super) fn new(node: &NodeRound) -> Self {
        let row = NodeRow {
            id: node.node.clone(),
            present: true,
            removed: None,
            standing: 0.0,
            standing_error: 0.0,
            probability: 0.0,
            contribution: None,
            drawn: 0,
            last_drawn: None,
            staleness: 0,
            staleness_mean: 0.0,
            loss: None,
            skill: None,
            why: String::new(),
            response: String::new(),
            refused: 0,
        };
        Self {
            row,
            responses: ResponseCounts::default(),
            refusals: BTreeMap::new(),
            samples: None,
            norm: None,
            online_loss: None,
            staleness_max: 0,
            staleness_sum: 0,
            rounds: 0,
            history: ThinnedSeries::default(),
        }
    }

    pub(super) fn close(&mut self, node: &NodeRound, axis: &RoundAxis, step: AxisStep) {
        self.rounds += 1;
        self.staleness_sum += u64::from(node.staleness);
        self.staleness_max = self.staleness_max.max(node.staleness);
        self.responses.count(node.response);
        for (refusal, count) in &node.refusals {
            *self.refusals.entry(*refusal).or_default() += u64::from(*count);
        }
        if let NodeResponse::Arrived { samples, online, norm, .. } = node.response {
            self.samples = Some(samples);
            self.norm = Some(norm);
            self.online_loss = online.map(|online| f64::from(online.loss)).or(self.online_loss);
        }
        self.history.put(axis, step, NodeSpan::new(node));
        let row = &mut self.row;
        row.present = node.why != Why::Absent && node.response != NodeResponse::Disconnected;
        row.removed = node.removed;
        row.standing = node.standing;
        row.standing_error = node.standing_error;
        row.probability = node.sampling_probability;
        row.contribution = node.contribution.or(row.contribution);
        row.drawn = node.drawn;
        row.last_drawn = node.last_drawn;
        row.staleness = node.staleness;
        row.staleness_mean = self.staleness_sum as f64 / f64::from(self.rounds);
        row.loss = loss(node).or(row.loss);
        if let MeasureResponse::Measured { skill: Some(skill), .. } = node.measured {
            row.skill = Some(skill.skill());
        }
        row.why = node.why.name().into();
        row.response = names::response_name(node.response);
        row.refused = self.refusals.values().sum();
    }

    pub(super) fn page(&self, version: u64, rank: usize, of: usize, axis: &RoundAxis) -> NodePage {
        let mean = |(sum, count): (f32, u32)| (count > 0).then(|| sum / count as f32);
        let point = |(span, cell): (RoundSpan, &NodeSpan)| NodePoint {
            span,
            drawn: cell.drawn,
            standing: cell.standing,
            standing_error: cell.standing_error,
            staleness: cell.staleness,
            contribution: mean(cell.contributions),
            loss: mean(cell.losses),
        };
        NodePage {
            version,
            row: self.row.clone(),
            rank,
            of,
            staleness_max: self.staleness_max,
            responses: self.responses,
            refusals: self.refusals.clone(),
            samples: self.samples,
            norm: self.norm,
            online_loss: self.online_loss,
            history: self.history.over(axis).map(point).collect(),
        }
    }

    /// Its share of draws, a character a span: `-` before it enrolled, `0` never to `9` always.
    pub(super) fn draws(&self, axis: &RoundAxis) -> String {
        let before = std::iter::repeat_n('-', self.history.missing());
        let share = |(span, cell): (RoundSpan, &NodeSpan)| {
            let ninths = (9 * cell.drawn).div_ceil(span.rounds()).min(9);
            char::from(b'0' + ninths as u8)
        };
        before.chain(self.history.over(axis).map(share)).collect()
    }
}
