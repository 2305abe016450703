//! A federation under test, with everything it ever said written down.

use std::collections::BTreeMap;

use evenhand_fairness::Utility;
use evenhand_federation::{
    Command, Effect, Federation, FederationConfig, InitialModel, Input, OrderPayload, RoundEvidence, Rules,
    SavedFederation, Tick, TrainingTask,
};
use evenhand_protocol::codec::EncodedUpdate;
use evenhand_protocol::identity::{Digest, NodeId};
use evenhand_protocol::message::{
    Account, Answer, Birth, Declined, Life, Manifest, Phase, Refusal, Status, Update,
};

pub(crate) const DEADLINE_MS: u32 = 1000;

pub(crate) fn node(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

pub(crate) fn close_to(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-12
}

pub(crate) fn blueprint(dim: usize) -> InitialModel {
    InitialModel {
        graph: Digest::of(b"graph"),
        onnx: b"onnx"[..].into(),
        weights: (0..dim).map(|i| i as f32).collect::<Vec<f32>>().into(),
    }
}

/// Small numbers, the additive utility, a stop rule that needs few rounds, and nobody measured by the others.
pub(crate) fn settings(nodes: u32) -> FederationConfig {
    let mut settings = FederationConfig::default();
    settings.federation.nodes_min = nodes;
    settings.federation.rounds = 1000;
    settings.federation.round_deadline_ms = DEADLINE_MS;
    settings.training.learning_rate = 0.5;
    settings.training.samples_max = 100;
    settings.contribution.utility = Utility::InnerProduct;
    settings.exploring.watched = 1;
    settings.exploring.window = 2;
    settings.exploring.newcomer_rounds = 3;
    settings.exploiting.k = 1;
    settings.exploiting.temperature = 1.0;
    settings.admission.norm_max = 100.0;
    settings.admission.norm_ratio_max = 0.0;
    settings.admission.samples_ratio_max = 0.0;
    settings
}

pub(crate) fn birth(session: u64, holds: Option<Digest>) -> Status {
    let birth = Birth { graph: None, weights: holds, token: None, software: "test".into() };
    Status { session, life: Life::Born(birth) }
}

/// The birth of one that shows this token.
pub(crate) fn knowing(token: Option<&str>) -> Status {
    let token = token.map(Into::into);
    let birth = Birth { graph: None, weights: None, token, software: "test".into() };
    Status { session: 2, life: Life::Born(birth) }
}

pub(crate) fn death(session: u64) -> Status {
    Status { session, life: Life::Dead }
}

pub(crate) fn update(round: u32, samples: u32, vector: &[f32]) -> Update {
    Update {
        round,
        samples,
        loss: 1.0,
        online_loss: f32::NAN,
        online_samples: 0,
        vector: EncodedUpdate::F32(vector.to_vec()),
    }
}

pub(crate) struct World {
    federation: Option<Federation>,
    pub(crate) now: Tick,
    pub(crate) closed: Vec<RoundEvidence>,
    pub(crate) tasks: Vec<(NodeId, TrainingTask)>,
    pub(crate) refusals: Vec<(NodeId, Refusal)>,
    pub(crate) manifests: Vec<(Option<NodeId>, Manifest)>,
    pub(crate) accounts: BTreeMap<NodeId, Account>,
    pub(crate) graphs: Vec<NodeId>,
    pub(crate) saved: Option<SavedFederation>,
}

impl World {
    pub(crate) fn new(settings: FederationConfig, dim: usize) -> Self {
        Self::of(Federation::new(Rules::new(settings).unwrap(), blueprint(dim)))
    }

    pub(crate) fn of(federation: Federation) -> Self {
        Self {
            federation: Some(federation),
            now: Tick(0),
            closed: Vec::new(),
            tasks: Vec::new(),
            refusals: Vec::new(),
            manifests: Vec::new(),
            accounts: BTreeMap::new(),
            graphs: Vec::new(),
            saved: None,
        }
    }

    /// With `names` born, so that the first round is open if they are enough.
    pub(crate) fn with(settings: FederationConfig, dim: usize, names: &[&str]) -> Self {
        let mut world = Self::new(settings, dim);
        for name in names {
            world.born(name, 1);
        }
        world
    }

    pub(crate) fn federation(&self) -> &Federation {
        self.federation.as_ref().unwrap()
    }

    pub(crate) fn step(&mut self, input: Input) -> Vec<Effect> {
        let (federation, effects) = self.federation.take().unwrap().step(self.now, input);
        self.federation = Some(federation);
        for effect in effects.clone() {
            match effect {
                Effect::Record(closed) => self.closed.push(*closed),
                Effect::Persist(saved) => self.saved = Some(*saved),
                Effect::Manifest { to, manifest } => self.manifests.push((to, manifest)),
                Effect::Account { node, account } => {
                    self.accounts.insert(node, account);
                }
                Effect::Publish { node, dispatch } => match dispatch {
                    OrderPayload::Train(task) => self.tasks.push((node, task)),
                    OrderPayload::Graph { .. } => self.graphs.push(node),
                    OrderPayload::Refused { refusal, .. } => self.refusals.push((node, refusal)),
                },
            }
        }
        effects
    }

    pub(crate) fn born(&mut self, name: &str, session: u64) {
        self.step(Input::Status { node: node(name), status: birth(session, None) });
    }

    pub(crate) fn dies(&mut self, name: &str, session: u64) {
        self.step(Input::Status { node: node(name), status: death(session) });
    }

    pub(crate) fn answers(&mut self, name: &str, answer: Answer) {
        self.step(Input::Answer { node: node(name), answer });
    }

    /// A valid update for the open round.
    pub(crate) fn updates(&mut self, name: &str, samples: u32, vector: &[f32]) {
        let round = self.federation().round();
        self.answers(name, Answer::Update(update(round, samples, vector)));
    }

    pub(crate) fn declines(&mut self, name: &str) {
        let round = self.federation().round();
        self.answers(name, Answer::Decline { round, reason: Declined::NoData });
    }

    pub(crate) fn command(&mut self, command: Command) {
        self.step(Input::Command(command));
    }

    /// Waits for the alarm.
    pub(crate) fn wait(&mut self) {
        self.now = self.federation().alarm().unwrap();
        self.step(Input::Tick);
    }

    pub(crate) fn phase(&self) -> Phase {
        self.federation().phase()
    }

    pub(crate) fn last(&self) -> &RoundEvidence {
        self.closed.last().unwrap()
    }

    /// Who was sent a task for `round`, in order.
    pub(crate) fn asked(&self, round: u32) -> Vec<&str> {
        self.tasks.iter().filter(|(_, task)| task.round() == round).map(|(node, _)| node.as_str()).collect()
    }

    pub(crate) fn standing(&self, name: &str) -> f64 {
        let members = self.federation().members();
        members.iter().find(|member| member.id().as_str() == name).unwrap().standing().value()
    }

    /// Kills the coordinator now and restores what it saved last.
    pub(crate) fn crash(&mut self) {
        let bytes = self.saved.as_ref().unwrap().to_bytes();
        self.federation = Some(
            Federation::restore(SavedFederation::from_bytes(&bytes).unwrap(), b"onnx"[..].into()).unwrap(),
        );
    }

    /// Ends the coordinator, changes its settings, and starts it again.
    pub(crate) fn restart(&mut self, settings: FederationConfig) {
        let mut saved = self.federation().save();
        saved.amend(saved.rules().amended(&Rules::new(settings).unwrap()).unwrap());
        self.saved = Some(saved);
        self.crash();
        self.step(Input::LinkRestored);
    }
}
