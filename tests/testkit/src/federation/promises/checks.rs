//! Checks of an observer after every input, and at the end.

use std::collections::BTreeSet;

use evenhand_federation::strategy::Participation;
use evenhand_federation::{Command, Effect, Input, NodeIndex, NodeResponse, OrderPayload, RoundEvidence};
use evenhand_protocol::identity::{Digest, NodeId};
use evenhand_protocol::message::Phase;

use super::event::DIM;
use super::{ModelPromise, PromiseObserver};
use crate::federation::scripted::ScriptedFederation;

impl PromiseObserver {
    /// Durable before announced.
    pub(super) fn check_order(&self, effects: &[Effect]) {
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
    pub(super) fn check_rewards(&mut self, effects: &[Effect]) {
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
    pub(super) fn check_closed(&mut self, closed: &RoundEvidence) {
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
    pub(super) fn check_standings(&mut self, exploring_before: bool) {
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
    pub(super) fn check_replay(&self) {
        let founded = ScriptedFederation::with_strategy(self.rules.clone(), DIM, self.strategy.new);
        let mut replayed = founded.federation().clone();
        for closed in &self.world.closed {
            let replay = replayed.replay(&closed.round, closed.received());
            replay.unwrap_or_else(|difference| panic!("{difference}"));
        }
        assert_eq!(replayed.weights(), self.world.federation().weights());
    }

    /// Time alone moves it on, as long as anybody is there.
    pub(super) fn check_not_stuck(&mut self) {
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
