//! A coordinator that can be killed between any two effects, with its disk, its wire and its nodes.

use std::collections::{BTreeMap, VecDeque};

use evenhand_fairness::{Estimator, SamplerKind, Utility};
use evenhand_federation::{
    ClosedRound, Effect, Federation, FederationConfig, InitialModel, Input, OrderPayload, Policy,
    RoundEvidence, Rules, SavedFederation, Tick, TrainingTask,
};
use evenhand_protocol::codec::Bf16;
use evenhand_protocol::identity::{Digest, NodeId};
use evenhand_protocol::message::{Answer, Declined, MeasureRequest, Measured, Phase, Status};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::NewStrategy;
use super::scripted::{birth, node, small_config, update};

/// Nodes of every run.
pub const NODES: usize = 5;
const DIM: usize = 4;

/// A federation of [`NODES`] nodes that explores for at most 10 of its 24 rounds.
pub fn crash_config(sampler: SamplerKind) -> FederationConfig {
    let mut rules = small_config(NODES as u32);
    rules.federation.rounds = 24;
    rules.contribution.utility = Utility::Cosine;
    rules.contribution.estimator = Estimator::Stratified;
    rules.exploring.tested_nodes = 2;
    rules.exploring.window = 4;
    rules.exploring.rounds_max = 10;
    rules.exploiting.k = 2;
    rules.exploiting.sampler = sampler;
    rules.exploiting.temperature = 0.05;
    rules
}

/// The same nodes under the policy that measures in every round; the reference changes once.
pub fn continuous_config() -> FederationConfig {
    let mut config = crash_config(SamplerKind::Credit);
    config.federation.policy = Policy::Continuous;
    config.federation.rounds = 30;
    config.continuous.reference_rounds = 20;
    config
}

/// The same where rounds fail: all nodes have no data at times, drawn ones decline, are silent or leave no time.
pub fn failing_config() -> FederationConfig {
    let mut config = continuous_config();
    config.federation.seed = FAILING_SEED;
    config
}

/// The seed by which nodes tell that they are to fail.
const FAILING_SEED: u64 = 77;

/// A node whose update is a function of its name, the round and θ; it answers a round's task
/// again with the same update.
pub struct RepeatableNode {
    id: NodeId,
    /// The weights it was given last.
    pub weights: Vec<f32>,
}

impl RepeatableNode {
    /// Its answer, or silence.
    fn fail_or_answer(&mut self, task: &TrainingTask) -> Option<Answer> {
        let round = task.round();
        let number = u32::from(self.id.as_str().as_bytes()[1] - b'0');
        match (round + number) % 7 {
            _ if is_without_data(round) => Some(Answer::Decline { round, reason: Declined::NoData }),
            0 => Some(Answer::Decline { round, reason: Declined::TrainingFailed }),
            1 => None,
            2 => Some(Answer::Update(update(round, 5, &[f32::NAN; DIM]))),
            _ => Some(self.answer(task)),
        }
    }

    fn answer(&mut self, task: &TrainingTask) -> Answer {
        match task.weights() {
            Some(weights) => self.weights = weights.to_vec(),
            None if Digest::of_weights(&self.weights) == task.digest() => {}
            None => return Answer::NeedWeights { round: task.round() },
        }
        let seed = u64::from(task.round()) << 8 | u64::from(self.id.as_str().as_bytes()[1]);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let target = f32::from(self.id.as_str().as_bytes()[1] - b'0');
        let vector: Vec<f32> =
            self.weights.iter().map(|w| 0.1 * (w - target) + rng.random_range(-0.3..0.3)).collect();
        Answer::Update(update(task.round(), 5 + task.round() % 3, &vector))
    }
}

/// Attempts in which no node has new data.
fn is_without_data(round: u32) -> bool {
    matches!(round % 6, 1 | 2)
}

/// A reference gradient that is a function of the node's name, the round and the seed: a common direction, and noise that
/// grows with the number in the name.
pub fn reference_answer(node: &NodeId, request: &MeasureRequest) -> Answer {
    let number = node.as_str().as_bytes()[1] - b'0';
    let mut rng = ChaCha8Rng::seed_from_u64(request.seed ^ u64::from(request.round) << 8 ^ u64::from(number));
    let noise = 0.5 + f32::from(number);
    let values: Vec<f32> = (0..DIM).map(|i| i as f32 + noise * rng.random_range(-1.0..1.0)).collect();
    Answer::Measured(Measured {
        round: request.round,
        samples: 5,
        skill: None,
        vector: Bf16::encode(&values),
    })
}

/// Coordinator, disk and wire. The process can be killed between any two effects.
pub struct CrashRun {
    config: FederationConfig,
    new_strategy: NewStrategy,
    pub federation: Federation,
    disk: Option<Vec<u8>>,
    /// The round log.
    pub log: BTreeMap<u32, RoundEvidence>,
    pub nodes: Vec<RepeatableNode>,
    wire: VecDeque<Input>,
    now: Tick,
    /// Effects so far.
    pub effects: u64,
    /// Kills so far.
    pub kills: u64,
}

impl CrashRun {
    pub fn start(config: FederationConfig, new_strategy: NewStrategy) -> Self {
        let ids = (0..NODES).map(|number| node(&format!("n{number}")));
        let mut run = Self {
            federation: founded(&config, new_strategy),
            config,
            new_strategy,
            disk: None,
            log: BTreeMap::new(),
            nodes: ids.map(|id| RepeatableNode { id, weights: Vec::new() }).collect(),
            wire: VecDeque::new(),
            now: Tick(0),
            effects: 0,
            kills: 0,
        };
        run.connect();
        run
    }

    /// Delivers what a broker delivers on subscription.
    fn connect(&mut self) {
        self.wire.push_back(Input::LinkRestored);
        let births = self.nodes.iter().map(|node| {
            let status: Status = birth(1, Some(Digest::of_weights(&node.weights)));
            Input::Status { node: node.id.clone(), status }
        });
        self.wire.extend(births);
    }

    /// Runs to the end, killed whenever `kill` says so of the number of effects so far.
    pub fn finish(mut self, mut kill: impl FnMut(u64) -> bool) -> Self {
        while self.federation.phase() != Phase::Finished {
            self.now = Tick(self.now.0 + 1);
            let input = match self.wire.pop_front() {
                Some(input) => input,
                None => {
                    self.now = self.federation.alarm().unwrap();
                    Input::Tick
                }
            };
            let effects = self.federation.step(self.now, input);
            let mut closed = Vec::new();
            for effect in effects {
                self.effects += 1;
                if kill(self.effects) {
                    self.kill();
                    break;
                }
                self.perform(effect, &mut closed);
            }
        }
        self
    }

    fn perform(&mut self, effect: Effect, closed: &mut Vec<RoundEvidence>) {
        match effect {
            Effect::Record(round) => closed.push(*round),
            // Record and state are one transaction.
            Effect::Persist(saved) => {
                self.disk = Some(saved.to_bytes());
                for closed in closed.drain(..) {
                    let before = self.log.insert(closed.round.round, closed);
                    assert!(before.is_none(), "a round is written once");
                }
            }
            Effect::Publish { node, payload: OrderPayload::Train(task) } => {
                let answering = self.nodes.iter_mut().find(|candidate| candidate.id == node).unwrap();
                let answer = match self.config.federation.seed {
                    FAILING_SEED => answering.fail_or_answer(&task),
                    _ => Some(answering.answer(&task)),
                };
                self.wire.extend(answer.map(|answer| Input::Answer { node, answer }));
            }
            Effect::Publish { node, payload: OrderPayload::Measure(request) } => {
                let answer = match (self.config.federation.seed, request.round) {
                    (FAILING_SEED, round) if is_without_data(round) => {
                        Answer::Unmeasured { round, reason: Declined::NoData }
                    }
                    _ => reference_answer(&node, &request),
                };
                self.wire.push_back(Input::Answer { node, answer });
            }
            Effect::Publish { .. } | Effect::Manifest { .. } | Effect::Account { .. } => {}
        }
    }

    /// Kills the process. Messages on their way to the coordinator are lost with its session.
    fn kill(&mut self) {
        self.kills += 1;
        self.wire.clear();
        self.federation = match &self.disk {
            Some(bytes) => {
                let saved = SavedFederation::from_bytes(bytes).unwrap();
                let strategy = (self.new_strategy)();
                Federation::restore_with_strategy(saved, b"onnx"[..].into(), strategy).unwrap()
            }
            None => founded(&self.config, self.new_strategy),
        };
        self.connect();
    }

    /// The records without the times.
    pub fn records(&self) -> Vec<ClosedRound> {
        let timeless = |closed: &RoundEvidence| ClosedRound {
            opened: Tick(0),
            closed: Tick(0),
            nodes: closed
                .round
                .nodes
                .iter()
                .cloned()
                .map(|node| evenhand_federation::NodeRound { refusals: BTreeMap::new(), ..node })
                .collect(),
            ..closed.round.clone()
        };
        self.log.values().map(timeless).collect()
    }
}

/// The federation before its first node.
pub fn founded(config: &FederationConfig, new_strategy: NewStrategy) -> Federation {
    let weights: Vec<f32> = vec![0.5; DIM];
    let initial_model =
        InitialModel { graph: Digest::of(b"graph"), onnx: b"onnx"[..].into(), weights: weights.into() };
    Federation::with_strategy(Rules::new(config.clone()).unwrap(), initial_model, new_strategy())
}

/// Asserts that a run killed at any single effect ends as the undisturbed one, and that this one can be replayed from its
/// records; returns it.
pub fn assert_survives_kills(config: &FederationConfig, new_strategy: NewStrategy) -> CrashRun {
    let calm = CrashRun::start(config.clone(), new_strategy).finish(|_| false);
    let models = |run: &CrashRun| run.log.values().last().unwrap().node_models.clone();
    let name = calm.federation.strategy().name();
    for at in 1..=calm.effects {
        let run = CrashRun::start(config.clone(), new_strategy).finish(|effect| effect == at);
        assert_eq!(run.kills, 1);
        assert_eq!(run.records(), calm.records(), "killed at effect {at} with {name}");
        assert_eq!(run.federation.weights(), calm.federation.weights());
        assert_eq!(run.federation.members(), calm.federation.members());
        assert_eq!(run.federation.measurement(), calm.federation.measurement());
        assert_eq!(models(&run), models(&calm));
    }
    let mut federation = founded(config, new_strategy);
    for closed in calm.log.values() {
        federation.replay(&closed.round, closed.received()).unwrap();
    }
    assert_eq!(federation.weights(), calm.federation.weights(), "{name}");
    assert_eq!(federation.measurement(), calm.federation.measurement(), "{name}");
    calm
}
