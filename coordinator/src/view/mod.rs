//! The read model of a federation: what the dashboard, its API and its metrics show, built from closed rounds.
//!
//! It is pure, holds no weights, costs time linear in the nodes for every round, and stays small: long
//! histories are thinned by merging neighbouring rounds.

mod names;
mod node;
mod overview;
mod round;
mod thinned;

use std::collections::HashMap;

use evenhand_link::Traffic;
use evenhand_protocol::identity::NodeId;
use serde::Serialize;

pub use self::node::{NodePage, NodePoint, NodeRow, ResponseCounts};
pub use self::overview::{
    DrawView, DriftView, ModelView, NodeCounts, OpenRoundView, Overview, PhaseChange, StalenessView,
    StopView, TrafficView,
};
pub use self::round::RoundPoint;
pub use self::thinned::RoundSpan;

use self::node::NodeHistory;
use self::thinned::{RoundAxis, ThinnedSeries};
use evenhand_federation::{ClosedRound, Federation, Policy};

/// Entries of the federation's history.
const ROUNDS_MAX: usize = 1024;

/// Entries of each node's history.
const NODE_ROUNDS_MAX: usize = 256;

/// A federation with its nodes and its past rounds.
#[derive(Debug, Clone)]
pub struct FederationView {
    overview: Overview,
    axis: RoundAxis,
    rounds: ThinnedSeries<RoundPoint>,
    node_axis: RoundAxis,
    nodes: Vec<NodeHistory>,
    index: HashMap<NodeId, usize>,
}

/// Every node.
#[derive(Debug, Clone, Serialize)]
pub struct NodeList<'a> {
    /// Version of the view.
    pub version: u64,
    /// The last closed round.
    pub round: u32,
    /// By column.
    pub nodes: Vec<&'a NodeRow>,
}

/// The past rounds.
#[derive(Debug, Clone, Serialize)]
pub struct RoundList<'a> {
    /// Version of the view.
    pub version: u64,
    /// Oldest first.
    pub rounds: Vec<&'a RoundPoint>,
}

/// The draws of all nodes over rounds.
#[derive(Debug, Clone, Serialize)]
pub struct DrawMap<'a> {
    /// Version of the view.
    pub version: u64,
    /// The rounds of each character of a row.
    pub spans: &'a [RoundSpan],
    /// A row for each node.
    pub rows: Vec<DrawRow<'a>>,
}

/// The draws of one node.
#[derive(Debug, Clone, Serialize)]
pub struct DrawRow<'a> {
    /// The node.
    pub id: &'a NodeId,
    /// A character a span: `-` before it enrolled, `0` never to `9` in every round.
    pub shares: String,
}

impl FederationView {
    /// The view of a federation without its past rounds; [`close`](Self::close) adds them.
    pub fn new(federation: &Federation) -> Self {
        let mut view = Self {
            overview: Overview::new(federation),
            axis: RoundAxis::new(ROUNDS_MAX),
            rounds: ThinnedSeries::default(),
            node_axis: RoundAxis::new(NODE_ROUNDS_MAX),
            nodes: Vec::new(),
            index: HashMap::new(),
        };
        view.refresh(federation, Traffic::default(), true);
        view
    }

    /// The ends of the coordinator's certificates, by their use.
    pub fn set_certificates(&mut self, certificates: impl IntoIterator<Item = (&'static str, i64)>) {
        self.overview.certificates = certificates.into_iter().collect();
    }

    /// Adds a closed round. Rounds come in order; one that was added before changes nothing.
    pub fn close(&mut self, record: &ClosedRound, seconds: f64, traffic: Traffic) {
        if self.last_closed().is_some_and(|last| record.round <= last) {
            return;
        }
        let point = RoundPoint::new(record, seconds, traffic);
        let node_step = self.node_axis.advance(record.round);
        for (column, node) in record.nodes.iter().enumerate() {
            if column == self.nodes.len() {
                self.index.insert(node.node.clone(), column);
                self.nodes.push(NodeHistory::new(node));
            }
            self.nodes[column].close(node, &self.node_axis, node_step);
        }
        self.overview.close(record, &point);
        let step = self.axis.advance(record.round);
        self.rounds.put(&self.axis, step, point);
    }

    /// Updates what changes between rounds; returns whether anything did.
    pub fn refresh(&mut self, federation: &Federation, traffic: Traffic, connected: bool) -> bool {
        let before = (self.overview.version, self.overview.clone());
        let overview = &mut self.overview;
        overview.phase = federation.phase();
        overview.failure = federation.failure().map(ToString::to_string);
        overview.outrun = federation.outruns_meters().map(|outrun| outrun.to_string());
        overview.connected = connected;
        overview.round = federation.round();
        overview.open = federation.open_round().map(|(asked, awaited)| OpenRoundView { asked, awaited });
        overview.nodes.present = federation.present();
        overview.traffic = TrafficView { bytes_up: traffic.bytes_down, bytes_down: traffic.bytes_up };
        overview.draws.worst_wait = promised_wait(federation);
        let mut moved = false;
        for (node, member) in self.nodes.iter_mut().zip(federation.members()) {
            moved |= node.row.present != member.is_online();
            node.row.present = member.is_online();
            if member.is_removed() && node.row.removed.is_none() {
                node.row.removed = Some(federation.round());
                moved = true;
            }
        }
        overview.nodes.removed = self.nodes.iter().filter(|node| node.row.removed.is_some()).count();
        let changed = moved || *overview != before.1;
        if changed {
            overview.version += 1;
        }
        changed
    }

    /// The federation without its nodes and its past.
    pub fn overview(&self) -> &Overview {
        &self.overview
    }

    /// The version: it grows with every change.
    pub fn version(&self) -> u64 {
        self.overview.version
    }

    /// Every node.
    pub fn nodes(&self) -> NodeList<'_> {
        NodeList {
            version: self.version(),
            round: self.last_closed().unwrap_or(0),
            nodes: self.nodes.iter().map(|node| &node.row).collect(),
        }
    }

    /// One node with its history.
    pub fn node(&self, id: &NodeId) -> Option<NodePage> {
        let node = &self.nodes[*self.index.get(id)?];
        let staying = || self.nodes.iter().filter(|other| other.row.removed.is_none());
        let rank = 1 + staying().filter(|other| other.row.standing > node.row.standing).count();
        Some(node.page(self.version(), rank, staying().count(), &self.node_axis))
    }

    /// Rounds that reach to `from` or beyond.
    pub fn rounds(&self, from: u32) -> RoundList<'_> {
        let points = self.rounds.entries();
        let first = points.partition_point(|point| point.to < from);
        RoundList { version: self.version(), rounds: points[first..].iter().collect() }
    }

    /// The draws of all nodes over rounds.
    pub fn draws(&self) -> DrawMap<'_> {
        let row = |node: &'_ NodeHistory| node.draws(&self.node_axis);
        DrawMap {
            version: self.version(),
            spans: self.node_axis.spans(),
            rows: self.nodes.iter().map(|node| DrawRow { id: &node.row.id, shares: row(node) }).collect(),
        }
    }

    fn last_closed(&self) -> Option<u32> {
        self.rounds.entries().last().map(|point| point.to)
    }
}

/// The longest mean wait that is promised to the present members; none under the policy `paper`.
fn promised_wait(federation: &Federation) -> Option<f64> {
    let rules = federation.rules();
    let members = federation.members().iter().filter(|member| !member.is_removed()).count();
    let is_continuous = rules.federation.policy == Policy::Continuous;
    is_continuous.then(|| rules.continuous.worst_wait(members, rules.exploiting.k))
}
