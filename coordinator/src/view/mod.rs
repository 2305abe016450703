//! What is shown of a federation: a read model that the state machine's records keep up to date.
//!
//! It is pure, holds no weights, costs time linear in the nodes for every round, and stays small: long
//! histories are thinned by merging neighbouring rounds.

mod history;
mod node;
mod overview;
mod round;
mod words;

use std::collections::HashMap;

use evenhand_link::Traffic;
use evenhand_protocol::identity::NodeId;
use serde::Serialize;

pub use self::history::Span;
pub use self::node::{Fates, NodePage, NodePoint, NodeRow};
pub use self::overview::{
    Census, DrawView, DriftView, ModelView, OpenRound, Overview, PhaseChange, StalenessView, StopView,
    TrafficView,
};
pub use self::round::RoundPoint;

use self::history::{Axis, Series};
use self::node::NodeView;
use evenhand_federation::{ClosedRound, Federation};

/// Entries of the federation's history.
const ROUNDS_KEPT: usize = 1024;

/// Entries of each node's history.
const NODE_ROUNDS_KEPT: usize = 256;

/// A federation as it is shown.
#[derive(Debug, Clone)]
pub struct View {
    standing: Overview,
    axis: Axis,
    rounds: Series<RoundPoint>,
    node_axis: Axis,
    nodes: Vec<NodeView>,
    index: HashMap<NodeId, usize>,
}

/// Every node.
#[derive(Debug, Clone, Serialize)]
pub struct NodeList<'a> {
    /// Of the view.
    pub version: u64,
    /// The last closed round.
    pub round: u32,
    /// By column.
    pub nodes: Vec<&'a NodeRow>,
}

/// The past rounds.
#[derive(Debug, Clone, Serialize)]
pub struct RoundList<'a> {
    /// Of the view.
    pub version: u64,
    /// Oldest first.
    pub rounds: Vec<&'a RoundPoint>,
}

/// Who was drawn when.
#[derive(Debug, Clone, Serialize)]
pub struct DrawMap<'a> {
    /// Of the view.
    pub version: u64,
    /// The rounds each character of a row tells of.
    pub spans: &'a [Span],
    /// A row for each node.
    pub rows: Vec<DrawRow<'a>>,
}

/// When one node was drawn.
#[derive(Debug, Clone, Serialize)]
pub struct DrawRow<'a> {
    /// Who.
    pub id: &'a NodeId,
    /// A character a span: `-` before it enrolled, `0` never to `9` in every round.
    pub shares: String,
}

impl View {
    /// Of a federation as it stands; its past is told by [`close`](Self::close).
    pub fn new(federation: &Federation) -> Self {
        let mut view = Self {
            standing: Overview::new(federation),
            axis: Axis::new(ROUNDS_KEPT),
            rounds: Series::default(),
            node_axis: Axis::new(NODE_ROUNDS_KEPT),
            nodes: Vec::new(),
            index: HashMap::new(),
        };
        view.glance(federation, Traffic::default(), true);
        view
    }

    /// Takes in a round that is over. Rounds come in order; one that was told before changes nothing.
    pub fn close(&mut self, record: &ClosedRound, seconds: f64, traffic: Traffic) {
        if self.last_closed().is_some_and(|last| record.round <= last) {
            return;
        }
        let point = RoundPoint::new(record, seconds, traffic);
        let node_step = self.node_axis.advance(record.round);
        for (column, node) in record.nodes.iter().enumerate() {
            if column == self.nodes.len() {
                self.index.insert(node.node.clone(), column);
                self.nodes.push(NodeView::new(node));
            }
            self.nodes[column].close(node, &self.node_axis, node_step);
        }
        self.standing.close(record, &point);
        let step = self.axis.advance(record.round);
        self.rounds.put(&self.axis, step, point);
    }

    /// Takes in how the federation stands between rounds. Says whether anything changed.
    pub fn glance(&mut self, federation: &Federation, traffic: Traffic, connected: bool) -> bool {
        let before = (self.standing.version, self.standing.clone());
        let overview = &mut self.standing;
        overview.phase = federation.phase();
        overview.failure = federation.failure().map(ToString::to_string);
        overview.connected = connected;
        overview.round = federation.round();
        overview.open = federation.open_round().map(|(asked, awaited)| OpenRound { asked, awaited });
        overview.nodes.present = federation.present();
        overview.traffic = TrafficView { bytes_up: traffic.bytes_up, bytes_down: traffic.bytes_down };
        let mut moved = false;
        for (node, member) in self.nodes.iter_mut().zip(federation.members()) {
            moved |= node.row.present != member.is_alive();
            node.row.present = member.is_alive();
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

    /// The federation as it stands.
    pub fn overview(&self) -> &Overview {
        &self.standing
    }

    /// Grows with every change.
    pub fn version(&self) -> u64 {
        self.standing.version
    }

    /// Every node.
    pub fn nodes(&self) -> NodeList<'_> {
        NodeList {
            version: self.version(),
            round: self.last_closed().unwrap_or(0),
            nodes: self.nodes.iter().map(|node| &node.row).collect(),
        }
    }

    /// Everything about one node.
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

    /// Who was drawn when.
    pub fn draws(&self) -> DrawMap<'_> {
        let row = |node: &'_ NodeView| node.draws(&self.node_axis);
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
