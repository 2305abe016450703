//! Promises under arbitrary inputs: no panic, no double count, no model for a node that was not drawn, no
//! standing lost.
//!
//! The checks know nothing of the machine: they rebuild model, weights and standings from the records
//! with the plainest arithmetic, and compare every effect with that.

mod checks;
mod event;

use std::collections::{BTreeMap, BTreeSet};

use evenhand_federation::{FederationConfig, Input, Member, SavedFederation, Tick};
use evenhand_protocol::codec::EncodedUpdate;
use evenhand_protocol::identity::{Digest, NodeId};
use evenhand_protocol::message::{Answer, Declined, Phase, Update};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

use event::{DIM, Event, NODES, SentVector, event, name};

use super::NewStrategy;
use super::scripted::{ScriptedFederation, birth, death, small_config};

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
