//! A federation with some of everything, kept in a store round by round.

use std::path::Path;
use std::sync::Arc;

use evenhand_coordinator::shell::Keeper;
use evenhand_coordinator::store::{Durable, Store};
use evenhand_fairness::{Estimator, Utility};
use evenhand_federation::{Command, Federation, FederationConfig, Input, NormPolicy, Rules};
use evenhand_protocol::codec::{self, CodecKind, ErrorFeedback};
use evenhand_protocol::message::{Answer, Declined};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::world::{World, blueprint, node, settings, update};

pub(crate) const DIM: usize = 40;

pub(crate) fn rules() -> FederationConfig {
    let mut rules = settings(4);
    rules.federation.rounds = 30;
    rules.contribution.utility = Utility::Cosine;
    rules.contribution.estimator = Estimator::Stratified;
    rules.exploring.watched = 2;
    rules.exploring.window = 4;
    rules.exploring.rounds_max = 8;
    rules.exploring.newcomer_rounds = 3;
    rules.exploiting.k = 2;
    rules.exploiting.temperature = 0.05;
    rules.exploiting.audit_every = 4;
    rules.exploiting.audit_window = 2;
    rules.exploiting.audit_level = 0.2;
    rules.training.codec = CodecKind::Int8;
    rules.admission.norm_max = 8.0;
    rules.admission.norm = NormPolicy::Clip;
    rules.admission.norm_ratio_max = 1.1;
    rules.admission.samples_ratio_max = 1.2;
    rules
}

pub(crate) fn founded(rules: &FederationConfig) -> Federation {
    Federation::new(Rules::new(rules.clone()).unwrap(), blueprint(DIM))
}

/// A coordinator and its store.
pub(crate) struct Kept {
    pub(crate) world: World,
    keeper: Durable,
    /// Rounds that are in the store.
    written: usize,
}

impl Kept {
    pub(crate) fn start(folder: &Path, rules: &FederationConfig, keep_rounds: u32) -> Self {
        let store = Arc::new(Store::open_or_create(folder).unwrap());
        let federation = store.resume(founded(rules)).unwrap();
        Self { world: World::of(federation), keeper: Durable::new(store, keep_rounds), written: 0 }
    }

    /// Makes durable what the last step wanted durable.
    fn sync(&mut self) {
        if let Some(saved) = self.world.saved.take() {
            let closed: Vec<_> = self.world.closed[self.written..].iter().cloned().map(Arc::new).collect();
            self.written = self.world.closed.len();
            self.keeper.keep(&closed, saved).unwrap();
        }
    }

    pub(crate) fn enrol(&mut self, names: &[&str]) {
        for name in names {
            self.world.born(name, 1);
            self.sync();
        }
    }

    /// Plays on until `rounds` are over: everybody who is asked answers with an update that follows from its name and
    /// the round, but for some who decline.
    pub(crate) fn play(&mut self, rounds: u32) {
        // Nobody is drawn anew: what is under way is asked for again.
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
    let own = u64::from(name.as_bytes()[0]);
    let mut rng = ChaCha8Rng::seed_from_u64(u64::from(round) << 8 | own);
    if rng.random_bool(0.1) {
        return Answer::Decline { round, reason: Declined::NoData };
    }
    let noise = (own - 96) as f32;
    let vector: Vec<f32> = (0..DIM).map(|i| (i % 3) as f32 + noise * rng.random_range(-0.5..0.5)).collect();
    let mut update = update(round, 5 + (round + own as u32) % 3, &vector);
    if own % 2 == 0 {
        update.vector = codec::encode(CodecKind::Int8, &vector, &mut ErrorFeedback::default(), &mut rng);
    }
    Answer::Update(update)
}
