//! The federation as a state machine: no I/O, no clock.
//!
//! ```text
//! Enrolling ──► Exploring ──► Exploiting ──► Finished
//!                   ▲             │
//!                   └─────────────┘  the operator, or a policy, wants contributions measured anew
//! ```
//!
//! [`Federation::step`] takes the state, the time and what happened, and gives the next state and what
//! is to be done. A shell carries the effects out in their order and calls `step` again at
//! [`Federation::alarm`]. A round: draw the nodes (all of them when exploring), send each its task,
//! collect updates until all are in or the deadline, evaluate, aggregate, persist, then announce.
//!
//! Every random draw comes from a generator that is part of the [saved](Federation::save) state, and
//! everything is summed in the order of columns, not of arrival: a coordinator that is killed at any
//! point and restored goes on bit for bit as if it had not been.

mod admission;
mod command;
mod draw;
mod drift;
mod effect;
mod enrolling;
mod exploiting;
mod exploring;
mod failed;
mod finished;
mod hearing;
mod history;
mod input;
mod member;
mod record;
mod replay;
mod round;
mod rules;
mod save;
mod settings;
mod shared;
mod standing;
pub mod strategy;
mod weights;

use std::collections::BTreeMap;
use std::sync::Arc;

use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{Manifest, Phase as Announced};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

pub use self::admission::{AcceptedUpdate, OnlineLoss};
pub use self::command::CommandRejection;
pub use self::draw::TrainingTask;
pub use self::effect::{Effect, OrderPayload};
pub use self::failed::FailureCause;
pub use self::input::{Command, Input, Tick};
pub use self::member::Member;
pub use self::record::{ClosedRound, Judgement, NodeResponse, NodeRound, RoundEvidence};
pub use self::replay::ReplayDifference;
pub use self::rules::{RuleError, Rules};
pub use self::save::{RestoreError, SavedFederation};
pub use self::settings::{
    AdmissionConfig, ExploitingConfig, ExploringConfig, FederationConfig, GeneralConfig, Loss, NormPolicy,
    OptimiserKind, StopRuleKind, TrainingConfig,
};
pub use self::standing::Standing;
pub use self::weights::Weights;

use self::enrolling::Enrolling;
use self::exploiting::Exploiting;
use self::exploring::Exploring;
use self::failed::Failed;
use self::finished::Finished;
use self::history::History;
use self::member::Roster;
use self::round::Stage;
use self::shared::{Graph, Outbox, Shared};
use crate::strategy::AnyStrategy;
use evenhand_fairness::Measurement;

/// The model a federation learns.
#[derive(Debug, Clone, PartialEq)]
pub struct InitialModel {
    /// Digest of the ONNX graph and its parameter order.
    pub graph: Digest,
    /// The ONNX file.
    pub onnx: Arc<[u8]>,
    /// θ₀.
    pub weights: Arc<[f32]>,
}

/// A federation at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Federation {
    shared: Shared,
    phase: Phase,
}

/// What the federation is doing, with what only that needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Phase {
    Enrolling(Enrolling),
    Exploring(Exploring),
    Exploiting(Exploiting),
    Finished(Finished),
    Failed(Failed),
}

impl Phase {
    fn stage(&self) -> Option<&Stage> {
        match self {
            Self::Exploring(exploring) => Some(&exploring.stage),
            Self::Exploiting(exploiting) => Some(&exploiting.stage),
            Self::Enrolling(_) | Self::Finished(_) | Self::Failed(_) => None,
        }
    }

    fn stage_mut(&mut self) -> Option<&mut Stage> {
        match self {
            Self::Exploring(exploring) => Some(&mut exploring.stage),
            Self::Exploiting(exploiting) => Some(&mut exploiting.stage),
            Self::Enrolling(_) | Self::Finished(_) | Self::Failed(_) => None,
        }
    }

    fn saved(&self) -> Self {
        match self {
            Self::Exploring(exploring) => Self::Exploring(exploring.saved()),
            Self::Exploiting(exploiting) => Self::Exploiting(exploiting.saved()),
            other => other.clone(),
        }
    }

    /// Everything that grows with the rounds.
    fn histories_mut(&mut self) -> Vec<&mut History> {
        match self {
            Self::Exploring(exploring) => vec![&mut exploring.history],
            Self::Exploiting(exploiting) => {
                vec![&mut exploiting.drift.reference, &mut exploiting.drift.batch]
            }
            Self::Enrolling(_) | Self::Finished(_) | Self::Failed(_) => Vec::new(),
        }
    }
}

impl Federation {
    /// A federation that nobody has joined yet.
    pub fn new(rules: Rules, blueprint: InitialModel) -> Self {
        let rng = ChaCha8Rng::seed_from_u64(rules.federation.seed);
        let strategy = AnyStrategy::new(rules.federation.strategy, &rules.baseline);
        let measurement = Measurement::new(rules.contribution);
        let shared = Shared {
            rules,
            graph: Graph::new(blueprint.graph, blueprint.onnx),
            roster: Roster::default(),
            latest: Weights::new(blueprint.weights),
            own: Vec::new(),
            measurement,
            strategy,
            rng,
            round: 0,
            paused: false,
            refused: BTreeMap::new(),
            heard: BTreeMap::new(),
            unheard: BTreeMap::new(),
        };
        Self { shared, phase: Phase::Enrolling(Enrolling::default()) }
    }

    /// Takes in what happened at `now`.
    pub fn step(mut self, now: Tick, input: Input) -> (Self, Vec<Effect>) {
        let mut out = Outbox::default();
        match input {
            Input::Status { node, status } => self.status(node, status, now, &mut out),
            Input::RetainedStatus { node, status } => {
                self.status(node.clone(), status, now, &mut out);
                self.doubt(node);
            }
            Input::Answer { node, answer } => self.answer(node, answer, now, &mut out),
            Input::Malformed { node } => self.malformed(node, &mut out),
            Input::Command(command) => self.command(command, &mut out),
            Input::LinkRestored => self.ask_again(now, &mut out),
            Input::Tick => self.expire(now),
        }
        self = self.advance(now, &mut out);
        let effects = self.effects(out);
        (self, effects)
    }

    /// When to call [`step`](Self::step) with [`Input::Tick`], if nothing happens before.
    pub fn alarm(&self) -> Option<Tick> {
        match self.phase.stage()? {
            Stage::Open(round) => round.deadline(),
            Stage::Resting { until } => {
                (!self.shared.paused && self.shared.roster.present() > 0).then_some(*until)
            }
        }
    }

    /// What the federation is doing, as it is announced.
    pub fn phase(&self) -> Announced {
        match &self.phase {
            Phase::Finished(_) => Announced::Finished,
            Phase::Failed(_) => Announced::Failed,
            _ if self.shared.paused => Announced::Paused,
            Phase::Enrolling(_) => Announced::Enrolling,
            Phase::Exploring(_) => Announced::Exploring,
            Phase::Exploiting(_) => Announced::Exploiting,
        }
    }

    /// Why it failed, if it did.
    pub fn failure(&self) -> Option<&FailureCause> {
        match &self.phase {
            Phase::Failed(failed) => Some(&failed.cause),
            _ => None,
        }
    }

    /// The round that is open, or the last one; 0 before the first.
    pub fn round(&self) -> u32 {
        self.shared.round
    }

    /// If a round is open: how many nodes were asked, and how many of them are still awaited.
    pub fn open_round(&self) -> Option<(usize, usize)> {
        let round = self.phase.stage()?.round()?;
        Some((round.draw.asked().len(), round.awaited().count()))
    }

    /// The rules it is run by.
    pub fn rules(&self) -> &Rules {
        &self.shared.rules
    }

    /// Every enrolled node, by column.
    pub fn members(&self) -> &[Member] {
        self.shared.roster.members()
    }

    /// Nodes that are there, enrolled or about to be.
    pub fn present(&self) -> usize {
        self.shared.roster.present()
    }

    /// The latest weights: for the operator, never for the wire.
    pub fn weights(&self) -> &Weights {
        &self.shared.latest
    }

    /// By column: every node's own model, where the strategy gives it one; never for the wire either.
    pub fn own(&self) -> &[Weights] {
        &self.shared.own
    }

    /// The measurement of contributions, with its state.
    pub fn measurement(&self) -> &Measurement {
        &self.shared.measurement
    }

    /// The ONNX file all nodes hold.
    pub fn onnx(&self) -> &Arc<[u8]> {
        &self.shared.graph.onnx
    }

    /// What everybody may know.
    pub fn manifest(&self) -> Manifest {
        Manifest {
            federation: self.shared.rules.federation.name.clone(),
            graph: self.shared.graph.digest,
            parameters: u32::try_from(self.shared.latest.values().len()).unwrap_or(u32::MAX),
            phase: self.phase(),
            round: self.shared.round,
        }
    }

    fn advance(mut self, now: Tick, out: &mut Outbox) -> Self {
        loop {
            let Self { mut shared, phase } = self;
            let (phase, moved) = match phase {
                Phase::Enrolling(enrolling) if enrolling.is_complete(&shared) => {
                    (enrolling.begin(&mut shared, now), true)
                }
                Phase::Exploring(mut exploring) => match exploring.stage {
                    Stage::Open(round) if round.is_over() => {
                        exploring.stage = Stage::Resting { until: now };
                        (exploring.close(round, &mut shared, now, out), true)
                    }
                    Stage::Resting { until } if shared.may_open(now, until) => {
                        (Phase::Exploring(exploring.open(&mut shared, now, out)), false)
                    }
                    stage => (Phase::Exploring(Exploring { stage, ..exploring }), false),
                },
                Phase::Exploiting(mut exploiting) => match exploiting.stage {
                    Stage::Open(round) if round.is_over() => {
                        exploiting.stage = Stage::Resting { until: now };
                        (exploiting.close(round, &mut shared, now, out), true)
                    }
                    Stage::Resting { until } if exploiting.explore => {
                        (exploiting.explore(&mut shared, until), true)
                    }
                    Stage::Resting { until } if shared.may_open(now, until) => {
                        (Phase::Exploiting(exploiting.open(&mut shared, now, out)), false)
                    }
                    stage => (Phase::Exploiting(Exploiting { stage, ..exploiting }), false),
                },
                phase => (phase, false),
            };
            out.manifest |= moved;
            self = Self { shared, phase };
            if !moved {
                return self;
            }
        }
    }

    fn effects(&self, out: Outbox) -> Vec<Effect> {
        let mut effects: Vec<Effect> =
            out.closed.into_iter().map(|closed| Effect::Record(Box::new(closed))).collect();
        if out.persist {
            effects.push(Effect::Persist(Box::new(self.save())));
        }
        effects.extend(out.announcements);
        if out.manifest {
            effects.push(Effect::Manifest { to: None, manifest: self.manifest() });
        }
        effects.extend(out.tasks);
        effects
    }

    /// Announces what is under way once more, with a full deadline for everybody.
    fn ask_again(&mut self, now: Tick, out: &mut Outbox) {
        out.manifest = true;
        self.doubt_everybody();
        let general = &self.shared.rules.federation;
        match self.phase.stage_mut() {
            Some(Stage::Open(round)) => {
                round.set_deadline(now.plus_ms(general.round_deadline_ms));
                self.shared.ask(round, now, out);
            }
            // The clock may be another one than that of the coordinator that was saved.
            Some(Stage::Resting { until }) => {
                let longest = general.round_interval_ms.max(general.round_deadline_ms);
                *until = (*until).min(now.plus_ms(longest));
            }
            None => {}
        }
    }
}
