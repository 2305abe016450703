//! Killed at any point and restored, a coordinator goes on as if it had not been.

use std::collections::{BTreeMap, VecDeque};

use evenhand_fairness::{Estimator, SamplerKind, Utility};
use evenhand_federation::strategy::StrategyKind;
use evenhand_federation::{
    ClosedRound, Effect, Federation, FederationConfig, InitialModel, Input, OrderPayload, RoundEvidence,
    Rules, SavedFederation, Tick, TrainingTask,
};
use evenhand_protocol::identity::{Digest, NodeId};
use evenhand_protocol::message::{Answer, Phase, Status};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::world::{birth, node, settings, update};

const NODES: usize = 5;
const DIM: usize = 4;

fn rules(sampler: SamplerKind) -> FederationConfig {
    let mut rules = settings(NODES as u32);
    rules.federation.rounds = 24;
    rules.contribution.utility = Utility::Cosine;
    rules.contribution.estimator = Estimator::Stratified;
    rules.exploring.watched = 2;
    rules.exploring.window = 4;
    rules.exploring.rounds_max = 10;
    rules.exploiting.k = 2;
    rules.exploiting.sampler = sampler;
    rules.exploiting.temperature = 0.05;
    rules
}

/// A node: its update is a function of its name, the round and θ, and it answers a round's task
/// again with the same update.
struct Node {
    id: NodeId,
    weights: Vec<f32>,
}

impl Node {
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

/// Coordinator, disk and wire. The process can be killed between any two effects.
struct Run {
    rules: FederationConfig,
    federation: Federation,
    disk: Option<Vec<u8>>,
    log: BTreeMap<u32, RoundEvidence>,
    nodes: Vec<Node>,
    wire: VecDeque<Input>,
    now: Tick,
    effects: u64,
    kills: u64,
}

impl Run {
    fn start(rules: FederationConfig) -> Self {
        let ids = (0..NODES).map(|number| node(&format!("n{number}")));
        let mut run = Self {
            federation: fresh(&rules),
            rules,
            disk: None,
            log: BTreeMap::new(),
            nodes: ids.map(|id| Node { id, weights: Vec::new() }).collect(),
            wire: VecDeque::new(),
            now: Tick(0),
            effects: 0,
            kills: 0,
        };
        run.connect();
        run
    }

    /// What a broker delivers on subscription.
    fn connect(&mut self) {
        self.wire.push_back(Input::LinkRestored);
        let births = self.nodes.iter().map(|node| {
            let status: Status = birth(1, Some(Digest::of_weights(&node.weights)));
            Input::Status { node: node.id.clone(), status }
        });
        self.wire.extend(births);
    }

    /// Runs to the end, killed whenever `kill` says so of the number of effects so far.
    fn finish(mut self, mut kill: impl FnMut(u64) -> bool) -> Self {
        while self.federation.phase() != Phase::Finished {
            self.now = Tick(self.now.0 + 1);
            let input = match self.wire.pop_front() {
                Some(input) => input,
                None => {
                    self.now = self.federation.alarm().unwrap();
                    Input::Tick
                }
            };
            let (federation, effects) = self.federation.clone().step(self.now, input);
            self.federation = federation;
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
                    let before = self.log.insert(closed.record.round, closed);
                    assert!(before.is_none(), "a round is written once");
                }
            }
            Effect::Publish { node, dispatch: OrderPayload::Train(task) } => {
                let answering = self.nodes.iter_mut().find(|candidate| candidate.id == node).unwrap();
                let answer = answering.answer(&task);
                self.wire.push_back(Input::Answer { node, answer });
            }
            Effect::Publish { .. } | Effect::Manifest { .. } | Effect::Account { .. } => {}
        }
    }

    /// What was on the wire to the coordinator is lost with its session.
    fn kill(&mut self) {
        self.kills += 1;
        self.wire.clear();
        self.federation = match &self.disk {
            Some(bytes) => {
                Federation::restore(SavedFederation::from_bytes(bytes).unwrap(), b"onnx"[..].into()).unwrap()
            }
            None => fresh(&self.rules),
        };
        self.connect();
    }

    /// The records without the times.
    fn records(&self) -> Vec<ClosedRound> {
        let timeless = |closed: &RoundEvidence| ClosedRound {
            opened: Tick(0),
            closed: Tick(0),
            nodes: closed
                .record
                .nodes
                .iter()
                .cloned()
                .map(|node| evenhand_federation::NodeRound { refusals: BTreeMap::new(), ..node })
                .collect(),
            ..closed.record.clone()
        };
        self.log.values().map(timeless).collect()
    }
}

fn fresh(rules: &FederationConfig) -> Federation {
    let weights: Vec<f32> = vec![0.5; DIM];
    let blueprint =
        InitialModel { graph: Digest::of(b"graph"), onnx: b"onnx"[..].into(), weights: weights.into() };
    Federation::new(Rules::new(rules.clone()).unwrap(), blueprint)
}

#[test]
fn killed_between_any_two_effects_it_ends_as_the_undisturbed_run() {
    for sampler in [SamplerKind::WithReplacement, SamplerKind::WithoutReplacement, SamplerKind::Credit] {
        let calm = Run::start(rules(sampler)).finish(|_| false);
        assert_eq!(calm.log.len(), 24);
        assert!(calm.log.values().any(|closed| closed.record.phase == Phase::Exploiting));
        for at in 1..=calm.effects {
            let run = Run::start(rules(sampler)).finish(|effect| effect == at);
            assert_eq!(run.kills, 1);
            assert_eq!(run.records(), calm.records(), "killed at effect {at} with {sampler:?}");
            assert_eq!(run.federation.weights(), calm.federation.weights());
            assert_eq!(run.federation.members(), calm.federation.members());
        }
    }
}

/// Where contributions depend on the rounds before, so does what must be kept.
#[test]
fn killed_with_a_stateful_utility_it_ends_as_the_undisturbed_run_and_can_be_recomputed() {
    let mut rules = rules(SamplerKind::Credit);
    rules.contribution.utility = Utility::Direction;
    let calm = Run::start(rules.clone()).finish(|_| false);
    assert!(calm.log.values().any(|closed| closed.record.phase == Phase::Exploiting));
    for at in 1..=calm.effects {
        let run = Run::start(rules.clone()).finish(|effect| effect == at);
        assert_eq!(run.records(), calm.records(), "killed at effect {at}");
        assert_eq!(run.federation.measurement(), calm.federation.measurement());
    }
    let mut federation = fresh(&rules);
    for closed in calm.log.values() {
        let before = federation.measurement().clone();
        federation = federation.replay(&closed.record, closed.received()).unwrap();
        assert_ne!(
            federation.measurement(),
            &before,
            "also advanced by rounds whose contributions were not used"
        );
    }
    assert_eq!(federation.measurement(), calm.federation.measurement());
    rules.contribution.utility = Utility::Cosine;
    let other = Run::start(rules).finish(|_| false);
    assert!(!other.federation.measurement().is_stateful());
}

#[test]
fn killed_again_and_again_it_still_ends_as_the_undisturbed_run() {
    let calm = Run::start(rules(SamplerKind::Credit)).finish(|_| false);
    let mut kills = 0;
    for seed in 0..60 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let run = Run::start(rules(SamplerKind::Credit)).finish(|_| rng.random_bool(0.03));
        assert_eq!(run.records(), calm.records(), "seed {seed}");
        assert_eq!(run.federation.weights().digest(), calm.federation.weights().digest());
        kills += run.kills;
    }
    assert!(kills >= 500, "{kills} kills");
}

pub(crate) const STRATEGIES: [StrategyKind; 7] = [
    StrategyKind::Evenhand,
    StrategyKind::FedAvg,
    StrategyKind::QFfl,
    StrategyKind::Fgfl,
    StrategyKind::Gog,
    StrategyKind::Standalone,
    StrategyKind::Cons,
];

fn played_by(strategy: StrategyKind) -> FederationConfig {
    let mut rules = rules(SamplerKind::WithoutReplacement);
    rules.federation.strategy = strategy;
    rules.federation.rounds = 16;
    rules
}

#[test]
fn every_strategy_survives_being_killed_between_any_two_effects() {
    for strategy in STRATEGIES {
        let calm = Run::start(played_by(strategy)).finish(|_| false);
        let own = |run: &Run| run.log.values().last().unwrap().own.clone();
        for at in 1..=calm.effects {
            let run = Run::start(played_by(strategy)).finish(|effect| effect == at);
            assert_eq!(run.records(), calm.records(), "killed at effect {at} with {strategy:?}");
            assert_eq!(run.federation.weights(), calm.federation.weights());
            assert_eq!(own(&run), own(&calm));
        }
    }
}

#[test]
fn every_strategy_can_be_recomputed_from_its_records() {
    for strategy in STRATEGIES {
        let rules = played_by(strategy);
        let run = Run::start(rules.clone()).finish(|_| false);
        let mut federation = fresh(&rules);
        for closed in run.log.values() {
            federation = federation.replay(&closed.record, closed.received()).unwrap();
        }
        assert_eq!(federation.weights(), run.federation.weights(), "{strategy:?}");
    }
}

/// The reward is a node's own where the strategy says so: nobody is handed another's model, or the one of all.
#[test]
fn a_model_of_one_s_own_goes_to_nobody_else() {
    for strategy in [StrategyKind::Fgfl, StrategyKind::Standalone, StrategyKind::Cons] {
        let run = Run::start(played_by(strategy)).finish(|_| false);
        // In the last round everybody was asked, with what the round before had left to each.
        let before = &run.log[&15];
        for (node, own) in run.nodes.iter().zip(&before.own) {
            assert_eq!(node.weights, own.values(), "{strategy:?}");
            assert_ne!(own.digest(), before.weights.digest(), "{strategy:?}");
        }
        let digests: std::collections::BTreeSet<String> =
            before.own.iter().map(|own| own.digest().to_string()).collect();
        assert_eq!(digests.len(), NODES, "{strategy:?}");
    }
}
