//! What is shown of the federation as a whole.

use std::collections::BTreeMap;

use evenhand_protocol::identity::{Digest, FederationId};
use evenhand_protocol::message::{Phase, Refusal, Why};
use serde::Serialize;

use super::node::Fates;
use super::round::RoundPoint;
use super::words;
use evenhand_fairness::SamplerKind;
use evenhand_federation::strategy::StrategyKind;
use evenhand_federation::{ClosedRound, Federation, NodeRound, Rules, StopRuleKind};

/// Changes of phase that are remembered.
const CHANGES_KEPT: usize = 64;

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
    pub rule: StopRuleKind,
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
    pub strategy: StrategyKind,
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

impl Overview {
    pub(super) fn new(federation: &Federation) -> Self {
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
                    StopRuleKind::Paper => exploring.strictness,
                    StopRuleKind::Calibrated => exploring.level,
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

    pub(super) fn close(&mut self, record: &ClosedRound, point: &RoundPoint) {
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
        let present = |node: &&NodeRound| node.removed.is_none() && node.why != Why::Absent;
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
