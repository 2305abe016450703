//! A federation with joins, removals, commands and refusals, stored round by round.

use std::path::Path;
use std::sync::Arc;

use evenhand_coordinator::shell::Persistence;
use evenhand_coordinator::store::{Store, StorePersistence};
use evenhand_fairness::{Estimator, Utility};
use evenhand_federation::strategy::Evenhand;
use evenhand_federation::{Command, Federation, FederationConfig, Input, NormPolicy, Rules};
use evenhand_protocol::codec::{self, CodecKind, ErrorFeedback};
use evenhand_protocol::message::{Answer, Declined};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use evenhand_testkit::federation::scripted::{ScriptedFederation, initial_model, node, small_config, update};

pub(crate) const DIM: usize = 40;

pub(crate) fn rules() -> FederationConfig {
    let mut rules = small_config(4);
    rules.federation.rounds = 30;
    rules.contribution.utility = Utility::Cosine;
    rules.contribution.estimator = Estimator::Stratified;
    rules.exploring.tested_nodes = 2;
    rules.exploring.window = 4;
    rules.exploring.rounds_max = 8;
    rules.exploring.newcomer_rounds = 3;
    rules.exploiting.k = 2;
    rules.exploiting.temperature = 0.05;
    rules.exploiting.drift_test_every = 4;
    rules.exploiting.drift_test_window = 2;
    rules.exploiting.drift_test_level = 0.2;
    rules.training.codec = CodecKind::Int8;
    rules.admission.norm_max = 8.0;
    rules.admission.on_norm_exceeded = NormPolicy::Clip;
    rules.admission.norm_ratio_max = 1.1;
    rules.admission.samples_ratio_max = 1.2;
    rules
}

pub(crate) fn new_federation(rules: &FederationConfig) -> Federation {
    Federation::new(Rules::new(rules.clone()).unwrap(), initial_model(DIM))
}

/// A federation and its store.
pub(crate) struct StoreHarness {
    pub(crate) world: ScriptedFederation,
    persistence: StorePersistence,
    /// Rounds in the store.
    written: usize,
}

impl StoreHarness {
    /// As [`start`](Self::start), with digests of updates only.
    pub(crate) fn start_without_updates(folder: &Path, rules: &FederationConfig) -> Self {
        let harness = Self::start(folder, rules, 8);
        Self { persistence: harness.persistence.digests_only(), ..harness }
    }

    pub(crate) fn start(folder: &Path, rules: &FederationConfig, keep_rounds: u32) -> Self {
        let store = Arc::new(Store::open_or_create(folder).unwrap());
        let federation = store.resume(new_federation(rules)).unwrap();
        Self {
            world: ScriptedFederation::driving(federation, || Box::new(Evenhand)),
            persistence: StorePersistence::new(store, keep_rounds),
            written: 0,
        }
    }

    /// Persists the effects of the last step.
    fn sync(&mut self) {
        if let Some(saved) = self.world.saved.take() {
            let closed: Vec<_> = self.world.closed[self.written..].iter().cloned().map(Arc::new).collect();
            self.written = self.world.closed.len();
            self.persistence.persist(&closed, saved).unwrap();
        }
    }

    pub(crate) fn enrol(&mut self, names: &[&str]) {
        for name in names {
            self.world.comes_online(name, 1);
            self.sync();
        }
    }

    /// Runs until `rounds` are closed: every node that is asked answers with an update computed from its name and the round;
    /// some decline.
    pub(crate) fn play(&mut self, rounds: u32) {
        // The open round is repeated, without another draw.
        self.world.step(Input::LinkRestored);
        while self.world.federation().round() <= rounds
            && self.world.federation().phase() != evenhand_protocol::message::Phase::Finished
        {
            let round = self.world.federation().round();
            match round {
                5 => self.enrol(&["e"]),
                12 => self.world.command(Command::Remove(node("b"))),
                14 => self.world.command(Command::Explore),
                _ => {}
            }
            self.sync();
            let asked: Vec<String> = self.world.asked(round).into_iter().map(str::to_owned).collect();
            for name in asked {
                if self.world.federation().round() == round {
                    self.world.answers(&name, answer(&name, round));
                    self.sync();
                }
            }
            if self.world.federation().round() == round && self.world.federation().alarm().is_some() {
                self.world.wait();
                self.sync();
            }
        }
    }
}

fn answer(name: &str, round: u32) -> Answer {
    let seed = u64::from(name.as_bytes()[0]);
    let mut rng = ChaCha8Rng::seed_from_u64(u64::from(round) << 8 | seed);
    if rng.random_bool(0.1) {
        return Answer::Decline { round, reason: Declined::NoData };
    }
    let noise = (seed - 96) as f32;
    let vector: Vec<f32> = (0..DIM).map(|i| (i % 3) as f32 + noise * rng.random_range(-0.5..0.5)).collect();
    let mut update = update(round, 5 + (round + seed as u32) % 3, &vector);
    if seed % 2 == 0 {
        update.vector = codec::encode(CodecKind::Int8, &vector, &mut ErrorFeedback::default(), &mut rng);
    }
    Answer::Update(update)
}
