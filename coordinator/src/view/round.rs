//! The view of closed rounds.

use evenhand_link::Traffic;
use evenhand_protocol::message::{Phase, Why};
use serde::Serialize;

use super::names;
use super::thinned::MergeLater;
use evenhand_federation::{ClosedRound, NodeRound};

/// One round, or several neighbours of a long run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RoundPoint {
    /// Its first round.
    pub from: u32,
    /// Its last round.
    pub to: u32,
    /// Exploring or exploiting, in the last.
    #[serde(serialize_with = "names::phase")]
    pub phase: Phase,
    /// Opening of the first, in milliseconds since 1970.
    pub opened_ms: u64,
    /// Closing of the last.
    pub closed_ms: u64,
    /// Nodes that were online, in the last.
    pub present: u32,
    /// Nodes asked, over all of them.
    pub asked: u64,
    /// Updates that counted, over all of them.
    pub arrived: u64,
    /// Messages refused, over all of them.
    pub refused: u64,
    /// Mean loss of the model on the nodes' batches.
    pub loss: Option<f64>,
    /// The stop rule's last p.
    pub p_value: Option<f64>,
    /// p of the last test whether settled standings still hold.
    pub drift_p_value: Option<f64>,
    /// β.
    pub temperature: f64,
    /// Mean over nodes of the rounds since each received the model, at the end.
    pub staleness_mean: f64,
    /// The longest of these.
    pub staleness_max: u32,
    /// Payload bytes from the nodes since the coordinator started, at the end: a running total.
    pub bytes_up: u64,
    /// Payload bytes to the nodes, likewise.
    pub bytes_down: u64,
    /// Seconds the coordinator spent on evaluating, merging and saving.
    pub seconds: f64,
}

impl RoundPoint {
    pub(super) fn new(record: &ClosedRound, seconds: f64, traffic: Traffic) -> Self {
        let staying = record.nodes.iter().filter(|node| node.removed.is_none());
        let (count, sum, longest) = staying.fold((0u32, 0u64, 0), |(count, sum, longest), node| {
            (count + 1, sum + u64::from(node.staleness), node.staleness.max(longest))
        });
        let present = |node: &&NodeRound| node.removed.is_none() && node.why != Why::Absent;
        // While exploiting a verdict is the drift test's.
        let exploring = record.phase != Phase::Exploiting;
        let p_value = record.verdict.as_ref().and_then(|verdict| verdict.p_value);
        let of_nodes = record.nodes.iter().flat_map(|node| node.refusals.values());
        Self {
            from: record.round,
            to: record.round,
            phase: record.phase,
            opened_ms: record.opened.0,
            closed_ms: record.closed.0,
            present: record.nodes.iter().filter(present).count() as u32,
            asked: record.asked().count() as u64,
            arrived: record.arrived() as u64,
            refused: of_nodes.chain(record.unknown_refusals.values()).map(|count| u64::from(*count)).sum(),
            loss: record.loss,
            p_value: p_value.filter(|_| exploring),
            drift_p_value: p_value.filter(|_| !exploring),
            temperature: record.temperature,
            staleness_mean: if count == 0 { 0.0 } else { sum as f64 / f64::from(count) },
            staleness_max: longest,
            bytes_up: traffic.bytes_down,
            bytes_down: traffic.bytes_up,
            seconds,
        }
    }
}

impl MergeLater for RoundPoint {
    fn merge(&mut self, later: Self) {
        let weight = |point: &Self| f64::from(point.to - point.from + 1);
        let loss = match (self.loss, later.loss) {
            (Some(before), Some(after)) => {
                let (w, v) = (weight(self), weight(&later));
                Some((w * before + v * after) / (w + v))
            }
            (before, after) => before.or(after),
        };
        *self = Self {
            from: self.from,
            opened_ms: self.opened_ms,
            asked: self.asked + later.asked,
            arrived: self.arrived + later.arrived,
            refused: self.refused + later.refused,
            loss,
            p_value: later.p_value.or(self.p_value),
            drift_p_value: later.drift_p_value.or(self.drift_p_value),
            seconds: self.seconds + later.seconds,
            ..later
        };
    }
}
