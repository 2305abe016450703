//! The view of the federation as a whole.

use std::collections::BTreeMap;

use evenhand_protocol::identity::{Digest, FederationId};
use evenhand_protocol::message::{Phase, Refusal, SkillPermille, Why};
use serde::Serialize;

use super::names;
use super::node::ResponseCounts;
use super::round::RoundPoint;
use evenhand_fairness::SamplerKind;
use evenhand_federation::{ClosedRound, Federation, MeasureResponse, NodeRound, Policy, Rules, StopRuleKind};

/// Changes of phase in the history.
const CHANGES_MAX: usize = 64;

/// The federation at one moment, without its nodes and its past.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overview {
    /// Grows with every change of the view.
    pub version: u64,
    /// The federation's name.
    pub name: FederationId,
    /// Version of the coordinator's program.
    pub software: &'static str,
    /// Its phase.
    #[serde(serialize_with = "names::phase")]
    pub phase: Phase,
    /// The cause, if it has failed.
    pub failure: Option<String>,
    /// That rounds come faster than the meters have new data, if they do.
    pub outrun: Option<String>,
    /// How contributions are measured and rewarded.
    pub policy: Policy,
    /// True if the broker is connected.
    pub connected: bool,
    /// The round that is open, or the last one.
    pub round: u32,
    /// The number after which it is finished; 0 for no end.
    pub rounds: u32,
    /// The open round, if one is.
    pub open: Option<OpenRoundView>,
    /// Nodes by state.
    pub nodes: NodeCounts,
    /// The rule that ends exploring.
    pub stop_rule: StopView,
    /// The draws.
    pub draws: DrawView,
    /// The test that restarts exploring, if one is configured.
    pub drift: Option<DriftView>,
    /// Its changes of phase, latest last.
    pub changes: Vec<PhaseChange>,
    /// Mean loss of the model on the batches of the last round that had any.
    pub loss: Option<f64>,
    /// That round.
    pub loss_round: Option<u32>,
    /// Rounds since nodes received the model.
    pub staleness: StalenessView,
    /// Skill of the nodes' forecasts for their owners; none before a node said its own.
    pub skill: Option<SkillView>,
    /// Responses of asked nodes, over all rounds.
    pub responses: ResponseCounts,
    /// Messages refused, by reason, over all rounds.
    #[serde(serialize_with = "names::refusals")]
    pub refusals: BTreeMap<Refusal, u64>,
    /// Payload bytes since the coordinator started.
    pub traffic: TrafficView,
    /// Ends of the coordinator's certificates by their use, in milliseconds since 1970.
    pub certificates: BTreeMap<&'static str, i64>,
    /// Seconds the coordinator spent on evaluating, merging and saving, over all rounds.
    pub seconds: f64,
    /// The model, without its weights.
    pub model: ModelView,
}

/// A round that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OpenRoundView {
    /// Nodes that were asked.
    pub asked: usize,
    /// Of these, nodes that have not answered.
    pub awaited: usize,
}

/// Nodes by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct NodeCounts {
    /// Nodes that have ever taken part.
    pub enrolled: usize,
    /// Nodes that are online, enrolled or about to be.
    pub present: usize,
    /// Nodes that the operator removed.
    pub removed: usize,
    /// Nodes that the first round needs.
    pub wanted: u32,
}

/// The rule that ends exploring, and its last verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StopView {
    /// Which rule.
    pub rule: StopRuleKind,
    /// τ.
    pub window: u32,
    /// M.
    pub tested_nodes: u32,
    /// p has to reach it: α, or the calibrated rule's level.
    pub threshold: f64,
    /// The last p.
    pub p_value: Option<f64>,
    /// Its last verdict in words.
    pub reason: Option<String>,
}

/// The draws after exploring.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DrawView {
    /// Draws a round.
    pub k: u32,
    /// The sampler.
    pub sampler: SamplerKind,
    /// β of the last round; as configured before the first.
    pub temperature: f64,
    /// β is found so that no expected staleness exceeds this number of rounds; none if β is configured.
    pub worst_staleness: Option<f64>,
    /// The longest mean wait that the policy `continuous` promises, in rounds; β is found for it. None under `paper`.
    pub worst_wait: Option<f64>,
}

/// The test of settled standings, and its last verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DriftView {
    /// Everybody is measured every so many rounds.
    pub every: u32,
    /// Standings do not hold if p falls below it.
    pub level: f64,
    /// The last p.
    pub p_value: Option<f64>,
    /// Its last verdict in words.
    pub reason: Option<String>,
}

/// From this round on, the federation was in this phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PhaseChange {
    /// The round.
    pub round: u32,
    /// The phase.
    #[serde(serialize_with = "names::phase")]
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

/// Skill of the nodes' forecasts, of those that said it in the last round in which any did.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SkillView {
    /// Nodes that said it.
    pub nodes: usize,
    /// Median over them.
    pub median: f64,
    /// Of these, nodes that are better off than with the best naive forecast.
    pub ahead: usize,
}

impl SkillView {
    fn of(nodes: &[NodeRound]) -> Option<Self> {
        let mut skills: Vec<f64> = nodes
            .iter()
            .filter_map(|node| match node.measured {
                MeasureResponse::Measured { skill, .. } => skill.map(SkillPermille::skill),
                _ => None,
            })
            .collect();
        skills.sort_by(f64::total_cmp);
        let ahead = skills.iter().filter(|skill| **skill > 0.0).count();
        let middle = skills.len() / 2;
        let median = match skills.len() {
            0 => return None,
            even if even % 2 == 0 => (skills[middle - 1] + skills[middle]) / 2.0,
            _ => skills[middle],
        };
        Some(Self { nodes: skills.len(), median, ahead })
    }
}

/// Payload bytes of the coordinator's link; up is towards the coordinator, as in the nodes' own figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TrafficView {
    /// From the nodes.
    pub bytes_up: u64,
    /// To the nodes.
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
            outrun: None,
            policy: rules.federation.policy,
            connected: true,
            round: manifest.round,
            rounds: rules.federation.rounds,
            open: None,
            nodes: NodeCounts { wanted: rules.federation.nodes_min, ..NodeCounts::default() },
            stop_rule: StopView {
                rule: exploring.rule,
                window: exploring.window,
                tested_nodes: exploring.tested_nodes,
                threshold: match exploring.rule {
                    StopRuleKind::Paper => exploring.alpha,
                    StopRuleKind::Calibrated => exploring.level,
                },
                p_value: None,
                reason: None,
            },
            draws: DrawView {
                k: exploiting.k,
                sampler: exploiting.sampler,
                temperature: exploiting.temperature,
                worst_staleness: Some(exploiting.worst_staleness).filter(|rounds| *rounds > 0.0),
                worst_wait: None,
            },
            drift: (exploiting.drift_test_every > 0).then_some(DriftView {
                every: exploiting.drift_test_every,
                level: exploiting.drift_test_level,
                p_value: None,
                reason: None,
            }),
            changes: Vec::new(),
            loss: None,
            loss_round: None,
            staleness: StalenessView::default(),
            skill: None,
            responses: ResponseCounts::default(),
            refusals: BTreeMap::new(),
            traffic: TrafficView::default(),
            certificates: BTreeMap::new(),
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
            if self.changes.len() == CHANGES_MAX {
                self.changes.remove(0);
            }
            self.changes.push(PhaseChange { round: record.round, phase: record.phase });
        }
        if let Some(verdict) = &record.verdict {
            let reason = Some(verdict.reason.to_string());
            match (&mut self.drift, record.phase) {
                (_, Phase::Exploring | Phase::Running) => {
                    self.stop_rule.p_value = verdict.p_value;
                    self.stop_rule.reason = reason;
                }
                (Some(drift), _) => {
                    drift.p_value = verdict.p_value;
                    drift.reason = reason;
                }
                (None, _) => {}
            }
        }
        let present = |node: &&NodeRound| node.removed.is_none() && node.why != Why::Absent;
        self.nodes.enrolled = record.nodes.len();
        self.nodes.present = record.nodes.iter().filter(present).count();
        self.nodes.removed = record.nodes.iter().filter(|node| node.removed.is_some()).count();
        self.draws.temperature = record.temperature;
        if record.loss.is_some() {
            (self.loss, self.loss_round) = (record.loss, Some(record.round));
        }
        self.staleness = StalenessView { mean: point.staleness_mean, max: point.staleness_max };
        self.skill = SkillView::of(&record.nodes).or(self.skill);
        for node in &record.nodes {
            self.responses.count(node.response);
        }
        for (refusal, count) in
            record.nodes.iter().flat_map(|node| &node.refusals).chain(&record.unknown_refusals)
        {
            *self.refusals.entry(*refusal).or_default() += u64::from(*count);
        }
        self.traffic = TrafficView { bytes_up: point.bytes_up, bytes_down: point.bytes_down };
        self.seconds += point.seconds;
        self.model.weights = record.weights_after;
    }
}
