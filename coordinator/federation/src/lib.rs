//! The federation as a state machine: no I/O, no clock.
//!
//! ```text
//! Enrolling ──► Running ──────────────────────► Finished     policy "continuous"
//!     │
//!     └───────► Exploring ──► Exploiting ──► Finished         policy "paper"
//!                   ▲             │
//!                   └─────────────┘  by command, or because contributions have drifted
//! ```
//!
//! [`Federation::step`] takes the time and one [`Input`], and returns the [`Effect`]s that a driver carries out in their
//! order. The driver calls `step` again at [`Federation::alarm`]. A round is one pipeline of values:
//!
//! ```text
//! CollectedRound { arrivals, responses }      the answers, each update within the limits
//!   → evaluate  → Evaluation                  contributions; a utility's state lives in Measurement
//!   → aggregate → ModelState                  θ_t, by the Strategy, past the guard
//!   → assess    → Assessment                  the phase: what enters standings, the stop rule
//!   → ClosedRound                             recorded, shown, audited
//! ```
//!
//! Every random draw comes from a generator that is part of the [saved](Federation::save) state, and
//! everything is summed in the order of indices, not of arrival: a coordinator that is killed at any
//! point and restored goes on bit for bit as if it had not been.
//!
//! # Example
//!
//! A driver in memory: nodes that answer every task and every request for a reference gradient alike.
//!
//! ```
//! use std::sync::Arc;
//!
//! use evenhand_federation::{Effect, Federation, FederationConfig, InitialModel, Input, OrderPayload, Rules, Tick};
//! use evenhand_protocol::codec::{Bf16, EncodedUpdate};
//! use evenhand_protocol::identity::{Digest, NodeId};
//! use evenhand_protocol::message::{Answer, Birth, Life, Measured, Phase, Status, Update};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut config = FederationConfig::default();
//! config.federation.nodes_min = 3;
//! config.federation.rounds = 5;
//! config.exploring.tested_nodes = 2;
//! config.exploiting.k = 1;
//! let model = InitialModel { graph: Digest::of(b"graph"), onnx: Arc::new([]), weights: Arc::new([0.0, 0.0]) };
//! let mut federation = Federation::new(Rules::new(config)?, model);
//!
//! let mut inputs = Vec::new();
//! for name in ["a", "b", "c"] {
//!     let birth = Birth { graph: None, weights: None, token: None, software: "example".into() };
//!     let status = Status { session: 1, life: Life::Born(birth) };
//!     inputs.push(Input::Status { node: NodeId::new(name)?, status });
//! }
//! while let Some(input) = inputs.pop() {
//!     for effect in federation.step(Tick(0), input) {
//!         let Effect::Publish { node, payload } = effect else { continue };
//!         let answer = match payload {
//!             OrderPayload::Train(task) => {
//!                 let (round, vector) = (task.round(), EncodedUpdate::F32(vec![1.0, 0.5]));
//!                 Answer::Update(Update { round, samples: 1, loss: 0.1, online_loss: 0.0, online_samples: 0, vector })
//!             }
//!             OrderPayload::Measure(request) => {
//!                 let vector = Bf16::encode(&[1.0, 0.5]);
//!                 Answer::Measured(Measured { round: request.round, samples: 1, skill: None, vector })
//!             }
//!             _ => continue,
//!         };
//!         inputs.push(Input::Answer { node, answer });
//!     }
//! }
//! assert_eq!((federation.round(), federation.phase()), (5, Phase::Finished));
//! # Ok(())
//! # }
//! ```

mod admission;
mod aggregation;
mod attempt;
mod closed;
mod collected;
mod command;
mod config;
mod draw;
mod drift;
mod effect;
mod enrolling;
mod evaluation;
mod exploiting;
mod exploring;
mod failed;
mod finished;
mod guard;
mod history;
mod inbound;
mod index;
mod input;
mod lifecycle;
mod measuring;
mod member;
mod model;
mod newcomer;
mod pace;
mod phase;
mod presence;
mod rate_limiter;
mod relative_limits;
mod replay;
mod roster;
mod round;
mod running;
mod save;
mod standing;
mod statement;
mod stop_test;
pub mod strategy;
mod substitute;
mod twin_debt;
mod weights;

use std::sync::Arc;

use evenhand_fairness::Measurement;
use evenhand_protocol::message::{Manifest, Phase};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

pub use self::admission::{AcceptedUpdate, OnlineLoss};
pub use self::closed::{ClosedRound, NodeResponse, NodeRound, ReceivedRound, RoundEvidence};
pub use self::command::CommandRejection;
pub use self::config::{
    AdmissionConfig, ContinuousConfig, ExploitingConfig, ExploringConfig, FederationConfig, GeneralConfig,
    NormPolicy, OptimiserKind, Policy, RuleError, Rules, StopRuleKind, TrainingConfig,
};
pub use self::draw::TrainingTask;
pub use self::effect::{Effect, OrderPayload};
pub use self::failed::FailureCause;
pub use self::guard::Intervention;
pub use self::index::{DrawSlot, NodeIndex};
pub use self::input::{Command, Input, Tick};
pub use self::measuring::{AcceptedMeasurement, MeasureResponse};
pub use self::member::Member;
pub use self::model::InitialModel;
pub use self::pace::OutrunMeters;
pub use self::replay::ReplayDifference;
pub use self::save::{RestoreError, SavedFederation};
pub use self::standing::Standing;
pub use self::weights::Weights;

use self::effect::EffectBuffer;
use self::enrolling::Enrolling;
use self::model::{ModelFile, ModelState};
use self::phase::FederationPhase;
use self::presence::Unconfirmed;
use self::rate_limiter::RateLimiter;
use self::roster::Roster;
use self::round::{RoundDeadline, RoundStage};
use self::strategy::{DynStrategy, Evenhand, Strategy};

/// A federation at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Federation {
    rules: Rules,
    file: ModelFile,
    roster: Roster,
    model: ModelState,
    measurement: Measurement,
    strategy: DynStrategy,
    rng: ChaCha8Rng,
    /// The round that is open, or the last one.
    round: u32,
    /// Number of the last attempt at a round: its number on the wire.
    attempt: u32,
    paused: bool,
    rate_limiter: RateLimiter,
    unconfirmed: Unconfirmed,
    phase: FederationPhase,
}

impl Federation {
    /// A federation without nodes yet, run by [`Evenhand`].
    pub fn new(rules: Rules, model: InitialModel) -> Self {
        Self::with_strategy(rules, model, Box::new(Evenhand))
    }

    /// A federation without nodes yet, run by any strategy.
    pub fn with_strategy(rules: Rules, model: InitialModel, strategy: Box<dyn Strategy>) -> Self {
        Self {
            file: ModelFile::new(model.graph, model.onnx),
            roster: Roster::default(),
            model: ModelState::new(model.weights),
            measurement: Measurement::new(rules.contribution),
            strategy: DynStrategy::new(strategy),
            rng: ChaCha8Rng::seed_from_u64(rules.federation.seed),
            round: 0,
            attempt: 0,
            paused: false,
            rate_limiter: RateLimiter::default(),
            unconfirmed: Unconfirmed::default(),
            phase: FederationPhase::Enrolling(Enrolling::default()),
            rules,
        }
    }

    /// Applies one input at the time `now`; returns what is to be done.
    pub fn step(&mut self, now: Tick, input: Input) -> Vec<Effect> {
        let mut out = EffectBuffer::default();
        match input {
            Input::Status { node, status } => self.status(node, status, now, &mut out),
            Input::RetainedStatus { node, status } => {
                self.status(node.clone(), status, now, &mut out);
                self.mark_unconfirmed(node);
            }
            Input::Answer { node, answer } => self.answer(node, answer, now, &mut out),
            Input::Malformed { node } => self.malformed(node, &mut out),
            Input::Command(command) => self.command(command, &mut out),
            Input::LinkRestored => self.ask_again(now, &mut out),
            Input::Tick => self.expire(now),
        }
        self.advance(now, &mut out);
        self.effects(out)
    }

    /// Time of the next call of [`step`](Self::step) with [`Input::Tick`], if nothing happens before.
    pub fn alarm(&self) -> Option<Tick> {
        match self.phase.stage()? {
            RoundStage::Open(round) => round.alarm(),
            RoundStage::Resting { until } => (!self.paused && self.roster.present() > 0).then_some(*until),
        }
    }

    /// The phase, as it is announced.
    pub fn phase(&self) -> Phase {
        match &self.phase {
            FederationPhase::Finished(_) => Phase::Finished,
            FederationPhase::Failed(_) => Phase::Failed,
            _ if self.paused => Phase::Paused,
            FederationPhase::Enrolling(_) => Phase::Enrolling,
            FederationPhase::Exploring(_) => Phase::Exploring,
            FederationPhase::Exploiting(_) => Phase::Exploiting,
            FederationPhase::Running(_) => Phase::Running,
        }
    }

    /// The cause of its failure, if it has failed.
    pub fn failure(&self) -> Option<&FailureCause> {
        match &self.phase {
            FederationPhase::Failed(failed) => Some(&failed.cause),
            _ => None,
        }
    }

    /// The round that is open, or the last one; 0 before the first.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Number of the last attempt at a round, which is its number on the wire: a round that nobody answers is asked again, under
    /// the next number, and is not counted.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// That rounds come faster than the meters have new data, if they do.
    pub fn outruns_meters(&self) -> Option<OutrunMeters> {
        match &self.phase {
            FederationPhase::Running(running) => running.pace.outrun(&self.rules.federation),
            _ => None,
        }
    }

    /// If a round is open: the number of nodes asked, and of those still awaited.
    pub fn open_round(&self) -> Option<(usize, usize)> {
        let round = self.phase.round()?;
        Some((round.draw.asked().len(), round.awaited().count()))
    }

    /// The rules in force.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The strategy.
    pub fn strategy(&self) -> &dyn Strategy {
        &*self.strategy
    }

    /// Every enrolled node, by [`NodeIndex`].
    pub fn members(&self) -> &[Member] {
        self.roster.members()
    }

    /// Number of nodes that are online, enrolled or pending.
    pub fn present(&self) -> usize {
        self.roster.present()
    }

    /// The latest weights: for the operator, never for the wire.
    pub fn weights(&self) -> &Weights {
        &self.model.latest
    }

    /// By index: every node's model, where the strategy gives each its own; never for the wire either.
    pub fn node_models(&self) -> &[Weights] {
        &self.model.node_models
    }

    /// The measurement of contributions, with the state of its utility.
    pub fn measurement(&self) -> &Measurement {
        &self.measurement
    }

    /// The ONNX file that all nodes hold.
    pub fn onnx(&self) -> &Arc<[u8]> {
        &self.file.onnx
    }

    /// The state of the federation as it is announced to everybody.
    pub fn manifest(&self) -> Manifest {
        Manifest {
            federation: self.rules.federation.name.clone(),
            graph: self.file.graph,
            parameters: u32::try_from(self.model.dimension()).unwrap_or(u32::MAX),
            phase: self.phase(),
            round: self.attempt,
        }
    }

    fn effects(&self, out: EffectBuffer) -> Vec<Effect> {
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
    fn ask_again(&mut self, now: Tick, out: &mut EffectBuffer) {
        out.manifest = true;
        self.mark_all_unconfirmed();
        let general = &self.rules.federation;
        let wait = match &self.phase {
            FederationPhase::Running(running) => running.pace.wait_max_ms(),
            _ => 0,
        };
        match self.phase.stage_mut() {
            Some(RoundStage::Open(round)) => {
                round.set_deadline(RoundDeadline::new(now, general.round_deadline_ms));
            }
            // The clock may be another one than that of the coordinator that was saved.
            Some(RoundStage::Resting { until }) => {
                let longest = general.round_interval_ms.max(general.round_deadline_ms).max(wait);
                *until = (*until).min(now.plus_ms(longest));
            }
            None => {}
        }
        if let Some(round) = self.phase.round() {
            self.ask(round, now, out);
        }
    }
}
