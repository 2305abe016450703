//! Promises under arbitrary inputs: no panic, no double count, no model for a node that was not drawn, no
//! standing lost.
//!
//! The checks know nothing of the machine: they rebuild model, weights and standings from the records
//! with the plainest arithmetic, and compare every effect with that.

use std::collections::{BTreeMap, BTreeSet};

use evenhand_federation::strategy::Participation;
use evenhand_federation::{
    Command, Effect, FederationConfig, Input, Member, NodeIndex, NodeResponse, OrderPayload, RoundEvidence,
    SavedFederation, Tick,
};
use evenhand_protocol::codec::EncodedUpdate;
use evenhand_protocol::identity::{Digest, NodeId};
use evenhand_protocol::message::{Answer, Declined, Phase, Update};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

use super::NewStrategy;
use super::scripted::{DEADLINE_MS, ScriptedFederation, birth, death, node, small_config};

const DIM: usize = 3;
const NODES: u8 = 6;

/// The model after a round, as far as an observer can compute it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelPromise {
    /// θ − η Σ pᵢΔθᵢ.
    Averaged,
    /// θ stays.
    Unchanged,
    /// Not to be computed from the records alone.
    Unknown,
}

/// A strategy and what an observer may expect of it.
#[derive(Debug, Clone, Copy)]
pub struct ObservedStrategy {
    pub new: NewStrategy,
    pub model: ModelPromise,
    /// True if a newcomer must begin with the model of another node, not with the latest.
    pub newcomers_start_low: bool,
}

/// One event. Nodes are numbers; the last is never admitted.
#[derive(Debug, Clone)]
enum Event {
    Born {
        node: u8,
        session: u8,
        holds: bool,
    },
    Died {
        node: u8,
        session: u8,
    },
    Update {
        node: u8,
        lag: i8,
        samples: u8,
        vector: SentVector,
    },
    EveryoneAnswers,
    Decline {
        node: u8,
        lag: i8,
    },
    NeedWeights {
        node: u8,
        lag: i8,
    },
    NeedGraph {
        node: u8,
    },
    Malformed {
        node: u8,
    },
    Tick {
        ms: u16,
    },
    Command(Command),
    LinkRestored,
    /// The process is killed and goes on from what was saved last.
    Crash,
    /// The process saves where it stands, in the middle of everything, and goes on from that.
    SaveAndRestore,
}

#[derive(Debug, Clone)]
enum SentVector {
    Good([i8; DIM]),
    Short,
    Nan,
    Huge,
}

fn event() -> impl Strategy<Value = Event> {
    let who = 0..NODES;
    let lag = prop_oneof![6 => Just(0i8), 1 => -2..2i8];
    let session = 0..4u8;
    let vector = prop_oneof![
        8 => any::<[i8; DIM]>().prop_map(SentVector::Good),
        1 => Just(SentVector::Short),
        1 => Just(SentVector::Nan),
        1 => Just(SentVector::Huge),
    ];
    let command = prop_oneof![
        2 => Just(Command::Begin),
        2 => Just(Command::Pause),
        4 => Just(Command::Resume),
        3 => Just(Command::Explore),
        1 => (0..NODES).prop_map(|n| Command::Remove(name(n))),
    ];
    prop_oneof![
        6 => (who.clone(), session.clone(), any::<bool>())
            .prop_map(|(node, session, holds)| Event::Born { node, session, holds }),
        4 => (who.clone(), session).prop_map(|(node, session)| Event::Died { node, session }),
        20 => (who.clone(), lag.clone(), 0..12u8, vector)
            .prop_map(|(node, lag, samples, vector)| Event::Update { node, lag, samples, vector }),
        8 => Just(Event::EveryoneAnswers),
        2 => (who.clone(), lag.clone()).prop_map(|(node, lag)| Event::Decline { node, lag }),
        3 => (who.clone(), lag).prop_map(|(node, lag)| Event::NeedWeights { node, lag }),
        1 => who.clone().prop_map(|node| Event::NeedGraph { node }),
        1 => who.prop_map(|node| Event::Malformed { node }),
        5 => (0..2 * DEADLINE_MS as u16).prop_map(|ms| Event::Tick { ms }),
        2 => command.prop_map(Event::Command),
        1 => Just(Event::LinkRestored),
        1 => Just(Event::Crash),
        1 => Just(Event::SaveAndRestore),
    ]
}

fn name(number: u8) -> NodeId {
    node(&format!("n{number}"))
}

fn config(k: u32, rounds_max: u32) -> FederationConfig {
    let mut rules = small_config(2);
    rules.federation.seed = 7;
    rules.federation.nodes_max = u32::from(NODES);
    rules.federation.rounds = 40;
    rules.exploring.rounds_max = rounds_max;
    rules.exploiting.k = k;
    rules.training.samples_max = 10;
    rules.admission.nodes = (0..NODES - 1).map(name).collect();
    rules
}

/// An outside observer.
struct PromiseObserver {
    world: ScriptedFederation,
    strategy: ObservedStrategy,
    rules: FederationConfig,
    /// θ as rebuilt from the records.
    weights: Vec<f32>,
    /// By index: every node's model after the last closed round, where the strategy gives it one.
    node_models: Vec<Digest>,
    /// Mean and count of φ as rebuilt from the records: (sum, count) since the last renewal.
    contributions: BTreeMap<NodeId, Vec<f64>>,
    /// Who received a task for which round.
    rewarded: BTreeMap<u32, BTreeSet<NodeId>>,
    /// The first good update of each drawn node in the open round.
    first: BTreeMap<(u32, NodeId), Vec<f32>>,
    /// Closed rounds.
    closed: u32,
    measured: BTreeSet<NodeId>,
}

impl PromiseObserver {
    fn new(rules: FederationConfig, strategy: ObservedStrategy) -> Self {
        Self {
            world: ScriptedFederation::with_strategy(rules.clone(), DIM, strategy.new),
            strategy,
            weights: (0..DIM).map(|i| i as f32).collect(),
            node_models: Vec::new(),
            rules,
            contributions: BTreeMap::new(),
            rewarded: BTreeMap::new(),
            first: BTreeMap::new(),
            closed: 0,
            measured: BTreeSet::new(),
        }
    }

    fn happens(&mut self, event: Event) {
        let open = self.world.federation().round();
        let of = |lag: i8| open.saturating_add_signed(lag.into());
        match event {
            Event::Born { node, session, holds } => {
                let digest = self.world.federation().weights().digest();
                let status = birth(session.into(), holds.then_some(digest));
                self.input(Input::Status { node: name(node), status });
            }
            Event::Died { node, session } => {
                self.input(Input::Status { node: name(node), status: death(session.into()) });
            }
            Event::Update { node, lag, samples, vector } => self.update(node, of(lag), samples, vector),
            Event::EveryoneAnswers => {
                let round = self.world.federation().round();
                for number in 0..NODES {
                    if self.world.federation().round() == round {
                        let vector = SentVector::Good([number as i8, 1, (round % 5) as i8]);
                        self.update(number, round, 1 + number, vector);
                    }
                }
            }
            Event::Decline { node, lag } => {
                let answer = Answer::Decline { round: of(lag), reason: Declined::NoData };
                self.input(Input::Answer { node: name(node), answer });
            }
            Event::NeedWeights { node, lag } => {
                let answer = Answer::NeedWeights { round: of(lag) };
                self.input(Input::Answer { node: name(node), answer });
            }
            Event::NeedGraph { node } => {
                let answer = Answer::NeedGraph(Digest::of(b"graph"));
                self.input(Input::Answer { node: name(node), answer });
            }
            Event::Malformed { node } => self.input(Input::Malformed { node: name(node) }),
            Event::Tick { ms } => {
                self.world.now = Tick(self.world.now.0 + u64::from(ms));
                self.input(Input::Tick);
            }
            Event::Command(command) => self.input(Input::Command(command)),
            Event::LinkRestored => self.input(Input::LinkRestored),
            Event::Crash => {
                if self.world.saved.is_some() {
                    self.world.crash();
                    self.forget_open_round();
                    self.input(Input::LinkRestored);
                }
            }
            Event::SaveAndRestore => {
                let saved = self.world.federation().save();
                assert_eq!(SavedFederation::from_bytes(&saved.to_bytes()).unwrap(), saved);
                assert_eq!(self.world.restored(saved.clone()).save(), saved);
                self.world.saved = Some(saved);
                self.world.crash();
                self.forget_open_round();
                self.input(Input::LinkRestored);
            }
        }
    }

    /// Updates of a round that was not closed are asked for again after a crash.
    fn forget_open_round(&mut self) {
        let closed = self.closed;
        self.first.retain(|(round, _), _| *round <= closed);
    }

    fn update(&mut self, number: u8, round: u32, samples: u8, vector: SentVector) {
        let (values, good) = match vector {
            SentVector::Good(values) => (values.map(|v| f32::from(v) / 4.0).to_vec(), true),
            SentVector::Short => (vec![1.0; DIM - 1], false),
            SentVector::Nan => (vec![f32::NAN; DIM], false),
            SentVector::Huge => (vec![1e3; DIM], false),
        };
        let federation = self.world.federation();
        let drawn = |member: &Member| {
            member.id() == &name(number) && member.last_drawn() == Some(round) && !member.is_removed()
        };
        let open = round == self.closed + 1 && federation.members().iter().any(drawn);
        if open && good && (1..=10).contains(&samples) {
            self.first.entry((round, name(number))).or_insert_with(|| values.clone());
        }
        let update = Update {
            round,
            samples: samples.into(),
            loss: 0.5,
            online_loss: 0.0,
            online_samples: 0,
            vector: EncodedUpdate::F32(values),
        };
        self.input(Input::Answer { node: name(number), answer: Answer::Update(update) });
    }

    fn input(&mut self, input: Input) {
        let closed_before = self.world.closed.len();
        let exploring_before = self.world.phase() == Phase::Exploring;
        let effects = self.world.step(input);
        self.check_order(&effects);
        for closed in self.world.closed.split_off(closed_before) {
            self.check_closed(&closed);
            self.world.closed.push(closed);
        }
        self.check_rewards(&effects);
        self.check_standings(exploring_before);
    }

    /// Durable before announced.
    fn check_order(&self, effects: &[Effect]) {
        let persisted = effects.iter().position(|effect| matches!(effect, Effect::Persist(_)));
        for (position, effect) in effects.iter().enumerate() {
            match effect {
                Effect::Record(_) => assert!(persisted.is_some_and(|at| position < at)),
                Effect::Persist(saved) => {
                    assert_eq!(**saved, self.world.federation().save(), "what is saved is what holds");
                }
                _ => assert!(persisted.is_none_or(|at| at < position)),
            }
        }
        let opened = effects.iter().any(|effect| {
            matches!(effect, Effect::Manifest { to: None, manifest }
            if manifest.round > self.closed && !self.rewarded.contains_key(&manifest.round))
        });
        assert!(!opened || persisted.is_some(), "a draw is saved before it is announced");
    }

    /// The model goes to members of the draw, and to nobody else.
    fn check_rewards(&mut self, effects: &[Effect]) {
        let federation = self.world.federation();
        for effect in effects {
            let Effect::Publish { node, payload: OrderPayload::Train(task) } = effect else { continue };
            let index = federation.members().iter().position(|member| member.id() == node).unwrap();
            let member = &federation.members()[index];
            assert_eq!(task.round(), federation.round(), "tasks belong to the open round");
            assert_eq!(task.round(), self.closed + 1);
            assert_eq!(member.last_drawn(), Some(task.round()), "{node} was not drawn");
            assert!(!member.is_removed());
            let latest = federation.weights().digest();
            match self.node_models.get(index) {
                Some(model) => assert_eq!(task.digest(), *model, "{node} is given another's model"),
                None if self.strategy.newcomers_start_low && !self.node_models.is_empty() => {
                    assert!(self.node_models.contains(&task.digest()), "{node} is given the latest model");
                }
                None => assert_eq!(task.digest(), latest),
            }
            if let Some(weights) = task.weights() {
                assert_eq!(Digest::of_weights(weights), task.digest());
            }
            self.rewarded.entry(task.round()).or_default().insert(node.clone());
        }
        let open = federation.round();
        let everybody = federation.strategy().participation() == Participation::Everybody;
        if federation.phase() == Phase::Exploiting && federation.round() > self.closed && !everybody {
            let newcomers = federation.members().iter().filter(|member| member.standing().is_entering());
            let limit = self.rules.exploiting.k as usize + newcomers.count();
            assert!(self.rewarded.get(&open).map_or(0, BTreeSet::len) <= limit, "k are drawn, and newcomers");
        }
    }

    /// The record tells the truth, and each update counted once.
    fn check_closed(&mut self, closed: &RoundEvidence) {
        let record = &closed.round;
        assert_eq!(record.round, self.closed + 1, "rounds are closed one after the other");
        self.closed = record.round;
        let asked: BTreeSet<NodeId> = record.asked().map(|node| node.node.clone()).collect();
        let rewarded = self.rewarded.get(&record.round).cloned().unwrap_or_default();
        assert!(rewarded.is_subset(&asked), "the model went to {rewarded:?}, drawn were {asked:?}");
        let counted: BTreeSet<NodeIndex> = closed.updates.iter().map(|(index, _)| *index).collect();
        assert_eq!(counted.len(), closed.updates.len(), "a node counts once");
        let total: u32 = closed.updates.iter().map(|(_, update)| update.samples()).sum();
        let mut step = [0.0f64; DIM];
        for (index, update) in &closed.updates {
            let row = &record.nodes[index.get()];
            assert!(asked.contains(&row.node));
            let first = &self.first[&(record.round, row.node.clone())];
            assert_eq!(update.vector(), &first[..], "the first good update counts");
            let share = f64::from(update.samples()) / f64::from(total);
            let NodeResponse::Arrived { weight, .. } = row.response else { panic!("{row:?}") };
            assert_eq!(weight, share);
            for (step, value) in step.iter_mut().zip(update.vector()) {
                *step += share * f64::from(*value);
            }
        }
        assert_eq!(record.arrived(), closed.updates.len());
        assert_eq!(record.weights_before, Digest::of_weights(&self.weights));
        match self.strategy.model {
            ModelPromise::Averaged => {
                for (weight, step) in self.weights.iter_mut().zip(step) {
                    *weight = (f64::from(*weight) - self.rules.training.learning_rate * step) as f32;
                }
            }
            ModelPromise::Unchanged => {}
            ModelPromise::Unknown => self.weights = closed.weights.values().to_vec(),
        }
        self.node_models = closed.node_models.iter().map(|model| model.digest()).collect();
        assert_eq!(record.node_models_after.is_some(), !self.node_models.is_empty());
        assert_eq!(closed.weights.values(), &self.weights[..]);
        assert_eq!(record.weights_after, Digest::of_weights(&self.weights));
        for row in &record.nodes {
            if let Some(contribution) = row.contribution {
                self.contributions.entry(row.node.clone()).or_default().push(contribution);
                self.measured.insert(row.node.clone());
            }
            let arrived = matches!(row.response, NodeResponse::Arrived { .. });
            if !arrived {
                assert!(row.contribution.is_none_or(|contribution| contribution == 0.0), "{row:?}");
            }
        }
    }

    /// No standing is lost, and each is the mean of what was measured (since the last renewal).
    fn check_standings(&mut self, exploring_before: bool) {
        let federation = self.world.federation();
        if federation.strategy().participation() != Participation::ExploreThenDraw {
            return;
        }
        let exploring = federation.phase() == Phase::Exploring;
        if exploring && !exploring_before && federation.members().iter().all(|m| m.standing().rounds() == 0) {
            self.contributions.clear();
        }
        for node in &self.measured {
            let member = federation.members().iter().find(|member| member.id() == node);
            let standing = member.unwrap_or_else(|| panic!("{node} is lost")).standing();
            let known = self.contributions.get(node).map_or(&[][..], Vec::as_slice);
            if standing.rounds() == 0 {
                assert!(standing.value().is_finite());
                continue;
            }
            assert_eq!(standing.rounds() as usize, known.len(), "{node}");
            if !standing.is_entering() && standing.passed() == 0 {
                let mean = known.iter().sum::<f64>() / known.len() as f64;
                assert!((standing.value() - mean).abs() <= 1e-9 * (1.0 + mean.abs()), "{node}");
            }
        }
    }

    /// The records can be recomputed, one from the other.
    fn check_replay(&self) {
        let founded = ScriptedFederation::with_strategy(self.rules.clone(), DIM, self.strategy.new);
        let mut replayed = founded.federation().clone();
        for closed in &self.world.closed {
            let replay = replayed.replay(&closed.round, closed.received());
            replay.unwrap_or_else(|difference| panic!("{difference}"));
        }
        assert_eq!(replayed.weights(), self.world.federation().weights());
    }

    /// Time alone moves it on, as long as anybody is there.
    fn check_not_stuck(&mut self) {
        self.input(Input::Command(Command::Begin));
        self.input(Input::Command(Command::Resume));
        self.input(Input::LinkRestored);
        for _ in 0..200 {
            let federation = self.world.federation();
            let Some(alarm) = federation.alarm() else {
                let over = matches!(federation.phase(), Phase::Finished | Phase::Failed);
                assert!(over || federation.present() == 0, "stuck in {:?}", federation.phase());
                return;
            };
            let before = (federation.round(), self.closed);
            self.world.now = self.world.now.max(alarm);
            self.input(Input::Tick);
            assert_ne!((self.world.federation().round(), self.closed), before, "time does not move it on");
        }
        panic!("it does not come to its end");
    }
}

/// Asserts that the promises hold in `cases` runs of arbitrary events, half of them under the first strategy.
pub fn assert_promises(strategies: &'static [ObservedStrategy], cases: u32) {
    let strategy = prop_oneof![Just(strategies[0]), prop::sample::select(strategies)];
    let config =
        Config { cases, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..Config::default() };
    let inputs = (strategy, 1u32..=2, 1u32..6, vec(event(), 1..250));
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(&inputs, |(strategy, k, rounds_max, events)| {
        let mut observer = PromiseObserver::new(self::config(k, rounds_max), strategy);
        for number in 0..3 {
            observer.happens(Event::Born { node: number, session: 0, holds: false });
        }
        for event in events {
            observer.happens(event);
        }
        observer.check_not_stuck();
        observer.check_replay();
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}
