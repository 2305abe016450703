//! A federation driven step by step.

use std::collections::BTreeMap;

use evenhand_fairness::{SamplerKind, Utility};
use evenhand_federation::strategy::{AggregatedModel, AggregationInput, Evenhand, Participation, Strategy};
use evenhand_federation::{
    Command, Effect, Federation, FederationConfig, InitialModel, Input, OrderPayload, Policy, RoundEvidence,
    Rules, SavedFederation, Tick, TrainingTask,
};
use evenhand_protocol::codec::EncodedUpdate;
use evenhand_protocol::identity::{Digest, NodeId};
use evenhand_protocol::message::{
    Account, Answer, Birth, Declined, Life, Manifest, MeasureRequest, Phase, Refusal, Status, Update,
};

use super::NewStrategy;

pub const DEADLINE_MS: u32 = 1000;

pub fn node(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

pub fn close_to(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-12
}

pub fn initial_model(dim: usize) -> InitialModel {
    InitialModel {
        graph: Digest::of(b"graph"),
        onnx: b"onnx"[..].into(),
        weights: (0..dim).map(|i| i as f32).collect::<Vec<f32>>().into(),
    }
}

/// The paper's policy, small numbers, the additive utility, a stop rule that needs few rounds, and no relative limits.
pub fn small_config(nodes: u32) -> FederationConfig {
    let mut config = FederationConfig::default();
    config.federation.policy = Policy::Paper;
    config.federation.nodes_min = nodes;
    config.federation.rounds = 1000;
    config.federation.round_deadline_ms = DEADLINE_MS;
    config.training.learning_rate = 0.5;
    config.training.samples_max = 100;
    config.contribution.utility = Utility::InnerProduct;
    config.exploring.tested_nodes = 1;
    config.exploring.window = 2;
    config.exploring.newcomer_rounds = 3;
    config.exploiting.k = 1;
    config.exploiting.sampler = SamplerKind::WithReplacement;
    config.exploiting.temperature = 1.0;
    config.admission.norm_max = 100.0;
    config.admission.norm_ratio_max = 0.0;
    config.admission.samples_ratio_max = 0.0;
    config
}

pub fn birth(session: u64, holds: Option<Digest>) -> Status {
    let birth = Birth { graph: None, weights: holds, token: None, software: "test".into() };
    Status { session, life: Life::Born(birth) }
}

/// The birth of a node that shows this token.
pub fn birth_with_token(token: Option<&str>) -> Status {
    let token = token.map(Into::into);
    let birth = Birth { graph: None, weights: None, token, software: "test".into() };
    Status { session: 2, life: Life::Born(birth) }
}

pub fn death(session: u64) -> Status {
    Status { session, life: Life::Dead }
}

pub fn update(round: u32, samples: u32, vector: &[f32]) -> Update {
    Update {
        round,
        samples,
        loss: 1.0,
        online_loss: f32::NAN,
        online_samples: 0,
        vector: EncodedUpdate::F32(vector.to_vec()),
    }
}

/// A federation that is driven step by step; every effect is recorded.
pub struct ScriptedFederation {
    federation: Federation,
    new_strategy: NewStrategy,
    pub now: Tick,
    pub closed: Vec<RoundEvidence>,
    pub tasks: Vec<(NodeId, TrainingTask)>,
    pub measures: Vec<(NodeId, MeasureRequest)>,
    pub refusals: Vec<(NodeId, Refusal)>,
    pub manifests: Vec<(Option<NodeId>, Manifest)>,
    pub accounts: BTreeMap<NodeId, Account>,
    pub graphs: Vec<NodeId>,
    pub saved: Option<SavedFederation>,
}

impl ScriptedFederation {
    pub fn new(config: FederationConfig, dim: usize) -> Self {
        Self::with_strategy(config, dim, || Box::new(Evenhand))
    }

    pub fn with_strategy(config: FederationConfig, dim: usize, new_strategy: NewStrategy) -> Self {
        let rules = Rules::new(config).unwrap();
        Self::driving(Federation::with_strategy(rules, initial_model(dim), new_strategy()), new_strategy)
    }

    /// Drives a federation that has strategies of this kind.
    pub fn driving(federation: Federation, new_strategy: NewStrategy) -> Self {
        Self {
            federation,
            new_strategy,
            now: Tick(0),
            closed: Vec::new(),
            tasks: Vec::new(),
            measures: Vec::new(),
            refusals: Vec::new(),
            manifests: Vec::new(),
            accounts: BTreeMap::new(),
            graphs: Vec::new(),
            saved: None,
        }
    }

    /// With `names` online, so that the first round is open if they are enough.
    pub fn with(config: FederationConfig, dim: usize, names: &[&str]) -> Self {
        Self::new(config, dim).joined_by(names)
    }

    /// The same with `names` online.
    pub fn joined_by(mut self, names: &[&str]) -> Self {
        for name in names {
            self.comes_online(name, 1);
        }
        self
    }

    pub fn federation(&self) -> &Federation {
        &self.federation
    }

    pub fn step(&mut self, input: Input) -> Vec<Effect> {
        let effects = self.federation.step(self.now, input);
        for effect in effects.clone() {
            match effect {
                Effect::Record(closed) => self.closed.push(*closed),
                Effect::Persist(saved) => self.saved = Some(*saved),
                Effect::Manifest { to, manifest } => self.manifests.push((to, manifest)),
                Effect::Account { node, account } => {
                    self.accounts.insert(node, account);
                }
                Effect::Publish { node, payload } => match payload {
                    OrderPayload::Train(task) => self.tasks.push((node, task)),
                    OrderPayload::Measure(request) => self.measures.push((node, request)),
                    OrderPayload::Graph { .. } => self.graphs.push(node),
                    OrderPayload::Refused { refusal, .. } => self.refusals.push((node, refusal)),
                },
            }
        }
        effects
    }

    pub fn comes_online(&mut self, name: &str, session: u64) {
        self.step(Input::Status { node: node(name), status: birth(session, None) });
    }

    pub fn goes_offline(&mut self, name: &str, session: u64) {
        self.step(Input::Status { node: node(name), status: death(session) });
    }

    pub fn answers(&mut self, name: &str, answer: Answer) {
        self.step(Input::Answer { node: node(name), answer });
    }

    /// A valid update for the open round.
    pub fn updates(&mut self, name: &str, samples: u32, vector: &[f32]) {
        let round = self.federation().round();
        self.answers(name, Answer::Update(update(round, samples, vector)));
    }

    pub fn declines(&mut self, name: &str) {
        let round = self.federation().round();
        self.answers(name, Answer::Decline { round, reason: Declined::NoData });
    }

    pub fn command(&mut self, command: Command) {
        self.step(Input::Command(command));
    }

    /// Waits for the alarm.
    pub fn wait(&mut self) {
        self.now = self.federation().alarm().unwrap();
        self.step(Input::Tick);
    }

    pub fn phase(&self) -> Phase {
        self.federation().phase()
    }

    pub fn last(&self) -> &RoundEvidence {
        self.closed.last().unwrap()
    }

    /// Who was sent a task for `round`, in order.
    pub fn asked(&self, round: u32) -> Vec<&str> {
        self.tasks.iter().filter(|(_, task)| task.round() == round).map(|(node, _)| node.as_str()).collect()
    }

    pub fn standing(&self, name: &str) -> f64 {
        let members = self.federation().members();
        members.iter().find(|member| member.id().as_str() == name).unwrap().standing().value()
    }

    /// Kills the coordinator now and restores what it saved last.
    pub fn crash(&mut self) {
        let bytes = self.saved.as_ref().unwrap().to_bytes();
        self.federation = self.restored(SavedFederation::from_bytes(&bytes).unwrap());
    }

    /// A federation with the same strategy, restored from `saved`.
    pub fn restored(&self, saved: SavedFederation) -> Federation {
        Federation::restore_with_strategy(saved, b"onnx"[..].into(), (self.new_strategy)()).unwrap()
    }

    /// Ends the coordinator, changes its settings, and starts it again.
    pub fn restart(&mut self, config: FederationConfig) {
        let mut saved = self.federation().save();
        saved.amend(saved.rules().amended(&Rules::new(config).unwrap()).unwrap());
        self.saved = Some(saved);
        self.crash();
        self.step(Input::LinkRestored);
    }
}

/// The simplest other strategy: uniform draws from the first round on, and the mean of what arrives.
#[derive(Debug, Clone, Copy)]
pub struct UniformDraws;

impl Strategy for UniformDraws {
    fn name(&self) -> &'static str {
        "uniform-draws"
    }

    fn participation(&self) -> Participation {
        Participation::Draw
    }

    fn aggregate(&mut self, round: &AggregationInput<'_>) -> AggregatedModel {
        AggregatedModel::common(round.averaged())
    }

    fn clone_box(&self) -> Box<dyn Strategy> {
        Box::new(*self)
    }
}
