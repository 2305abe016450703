//! What is shown of a federation: a read model that the state machine's records keep up to date.
//!
//! It is pure, holds no weights, costs time linear in the nodes for every round, and stays small: long
//! histories are thinned by merging neighbouring rounds.

mod history;
mod node;
mod round;
mod words;

use std::collections::{BTreeMap, HashMap};

use evenhand_link::Traffic;
use evenhand_protocol::identity::{Digest, FederationId, NodeId};
use evenhand_protocol::message::{Phase, Refusal};
use serde::Serialize;

pub use self::history::Span;
pub use self::node::{Fates, NodePage, NodePoint, NodeRow};
pub use self::round::RoundPoint;
pub use self::words::{phase_word, refusal_word};

use self::history::{Axis, Series};
use self::node::NodeView;
use crate::fairness::SamplerKind;
use crate::federation::{Federation, RoundRecord, RuleKind, Rules, Strategy};

/// Entries of the federation's history.
const ROUNDS_KEPT: usize = 1024;

/// Entries of each node's history.
const NODE_ROUNDS_KEPT: usize = 256;

/// Changes of phase that are remembered.
const CHANGES_KEPT: usize = 64;

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

/// The federation at one moment, without its nodes and its past.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overview {
    /// Grows with every change of the view.
    pub version: u64,
    /// The federation's name.
    pub name: FederationId,
    /// Version of the coordinator's program.
    pub software: &'static str,
    /// What it is doing.
    #[serde(serialize_with = "words::phase")]
    pub phase: Phase,
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// Whether the broker is there.
    pub connected: bool,
    /// The round that is open, or the last one.
    pub round: u32,
    /// It ends after so many.
    pub rounds: u32,
    /// The open round, if one is.
    pub open: Option<OpenRound>,
    /// Who is there.
    pub nodes: Census,
    /// What ends exploring.
    pub stop_rule: StopView,
    /// Who is drawn then.
    pub draws: DrawView,
    /// What sends it back to exploring, if anything does.
    pub drift: Option<DriftView>,
    /// When it changed from one phase to another, latest last.
    pub changes: Vec<PhaseChange>,
    /// Mean loss of the model on the batches of the last round that had any.
    pub loss: Option<f64>,
    /// Rounds since nodes received the model.
    pub staleness: StalenessView,
    /// Asked nodes by what became of them, over all rounds.
    pub fates: Fates,
    /// What was refused, by reason, over all rounds.
    #[serde(serialize_with = "words::refusals")]
    pub refusals: BTreeMap<Refusal, u64>,
    /// Payload bytes since the coordinator started.
    pub traffic: TrafficView,
    /// Seconds the coordinator spent on evaluating, merging and saving, over all rounds.
    pub seconds: f64,
    /// The model: what it is, never what it says.
    pub model: ModelView,
}

/// A round that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OpenRound {
    /// Nodes that were asked.
    pub asked: usize,
    /// Of these, nodes that have not answered.
    pub awaited: usize,
}

/// How many nodes there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Census {
    /// Nodes that have ever taken part.
    pub enrolled: usize,
    /// Nodes that are there, enrolled or about to be.
    pub present: usize,
    /// Nodes the operator shut out.
    pub removed: usize,
    /// Nodes it begins with.
    pub wanted: u32,
}

/// What ends exploring, and how far that is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StopView {
    /// Which rule.
    pub rule: RuleKind,
    /// τ.
    pub window: u32,
    /// M.
    pub watched: u32,
    /// p has to reach it: α, or the calibrated rule's level.
    pub threshold: f64,
    /// The last p.
    pub p_value: Option<f64>,
    /// What the rule last said.
    pub reason: Option<String>,
}

/// Who is drawn once standings are known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DrawView {
    /// How nodes are drawn and merged.
    pub strategy: Strategy,
    /// Draws a round.
    pub k: u32,
    /// How they are made.
    pub sampler: SamplerKind,
    /// β.
    pub temperature: f64,
}

/// Whether settled standings still hold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DriftView {
    /// Everybody is measured every so many rounds.
    pub every: u32,
    /// Standings do not hold if p falls below it.
    pub level: f64,
    /// The last p.
    pub p_value: Option<f64>,
    /// What the test last said.
    pub reason: Option<String>,
}

/// From this round on, the federation was in this phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PhaseChange {
    /// The round.
    pub round: u32,
    /// The phase.
    #[serde(serialize_with = "words::phase")]
    pub phase: Phase,
}

/// Rounds since nodes received the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct StalenessView {
    /// Mean over nodes.
    pub mean: f64,
    /// The longest.
    pub max: u32,
}

/// Payload bytes of the coordinator's link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TrafficView {
    /// From the coordinator.
    pub bytes_up: u64,
    /// To it.
    pub bytes_down: u64,
}

/// The model, without its weights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelView {
    /// Trainable parameters.
    pub parameters: u32,
    /// SHA-256 of the ONNX graph.
    #[serde(serialize_with = "digest")]
    pub graph: Digest,
    /// SHA-256 of the latest weights.
    #[serde(serialize_with = "digest")]
    pub weights: Digest,
}

fn digest<S: serde::Serializer>(digest: &Digest, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(digest)
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
    pub fn close(&mut self, record: &RoundRecord, seconds: f64, traffic: Traffic) {
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

impl Overview {
    fn new(federation: &Federation) -> Self {
        let rules: &Rules = federation.rules();
        let (exploring, exploiting) = (&rules.exploring, &rules.exploiting);
        let manifest = federation.manifest();
        Self {
            version: 0,
            name: manifest.federation,
            software: env!("CARGO_PKG_VERSION"),
            phase: manifest.phase,
            failure: None,
            connected: true,
            round: manifest.round,
            rounds: rules.federation.rounds,
            open: None,
            nodes: Census { wanted: rules.federation.nodes_min, ..Census::default() },
            stop_rule: StopView {
                rule: exploring.rule,
                window: exploring.window,
                watched: exploring.watched,
                threshold: match exploring.rule {
                    RuleKind::Paper => exploring.strictness,
                    RuleKind::Calibrated => exploring.level,
                },
                p_value: None,
                reason: None,
            },
            draws: DrawView {
                strategy: rules.federation.strategy,
                k: exploiting.k,
                sampler: exploiting.sampler,
                temperature: exploiting.temperature,
            },
            drift: (exploiting.audit_every > 0).then_some(DriftView {
                every: exploiting.audit_every,
                level: exploiting.audit_level,
                p_value: None,
                reason: None,
            }),
            changes: Vec::new(),
            loss: None,
            staleness: StalenessView::default(),
            fates: Fates::default(),
            refusals: BTreeMap::new(),
            traffic: TrafficView::default(),
            seconds: 0.0,
            model: ModelView {
                parameters: manifest.parameters,
                graph: manifest.graph,
                weights: federation.weights().digest(),
            },
        }
    }

    fn close(&mut self, record: &RoundRecord, point: &RoundPoint) {
        self.version += 1;
        self.phase = record.phase;
        self.round = record.round;
        self.open = None;
        if self.changes.last().is_none_or(|last| last.phase != record.phase) {
            if self.changes.len() == CHANGES_KEPT {
                self.changes.remove(0);
            }
            self.changes.push(PhaseChange { round: record.round, phase: record.phase });
        }
        if let Some(verdict) = &record.verdict {
            let told = Some(verdict.reason.clone());
            match (&mut self.drift, record.phase) {
                (_, Phase::Exploring) => {
                    self.stop_rule.p_value = verdict.p_value;
                    self.stop_rule.reason = told;
                }
                (Some(drift), _) => {
                    drift.p_value = verdict.p_value;
                    drift.reason = told;
                }
                (None, _) => {}
            }
        }
        let present = |node: &&crate::federation::NodeRound| {
            node.removed.is_none() && node.why != evenhand_protocol::message::Why::Absent
        };
        self.nodes.enrolled = record.nodes.len();
        self.nodes.present = record.nodes.iter().filter(present).count();
        self.nodes.removed = record.nodes.iter().filter(|node| node.removed.is_some()).count();
        self.draws.temperature = record.temperature;
        self.loss = record.loss.or(self.loss);
        self.staleness = StalenessView { mean: point.staleness_mean, max: point.staleness_max };
        for node in &record.nodes {
            self.fates.count(node.fate);
        }
        for (refusal, count) in record.nodes.iter().flat_map(|node| &node.refusals).chain(&record.strangers) {
            *self.refusals.entry(*refusal).or_default() += u64::from(*count);
        }
        self.traffic = TrafficView { bytes_up: point.bytes_up, bytes_down: point.bytes_down };
        self.seconds += point.seconds;
        self.model.weights = record.weights_after;
    }
}
