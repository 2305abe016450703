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
mod draw;
mod effect;
mod enrolling;
mod exploiting;
mod exploring;
mod failed;
mod finished;
mod input;
mod member;
mod record;
mod replay;
mod round;
mod rules;
mod save;
mod shared;
mod standing;
mod weights;

use std::collections::BTreeMap;
use std::sync::Arc;

use evenhand_protocol::identity::{Digest, NodeId};
use evenhand_protocol::message::{
    Answer, Birth, Life, Manifest, Phase as Announced, Refusal, Status, Update,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

pub use self::admission::{Accepted, Online};
pub use self::draw::Task;
pub use self::effect::{Dispatch, Effect};
pub use self::failed::Cause;
pub use self::input::{Command, Input, Tick};
pub use self::member::Member;
pub use self::record::{Closed, Fate, Judgement, NodeRound, RoundRecord};
pub use self::replay::Difference;
pub use self::rules::{
    Admission, Exploitation, Exploration, General, Loss, NormPolicy, RuleError, RuleKind, Rules, Settings,
    Strategy, Training,
};
pub use self::save::{RestoreError, Saved};
pub use self::standing::Standing;
pub use self::weights::Weights;

use self::admission::{Limits, admit};
use self::enrolling::Enrolling;
use self::exploiting::Exploiting;
use self::exploring::Exploring;
use self::failed::Failed;
use self::finished::Finished;
use self::member::{Candidate, Place, Roster, Session};
use self::round::{Absence, Stage};
use self::shared::{Graph, Outbox, Shared};

/// Scores models on data the coordinator holds, for the utilities that need it.
///
/// A pure function of the weights: the same weights have the same score whenever they are asked for.
pub trait Examiner {
    /// The worth of a model: minus its loss, or its accuracy.
    fn score(&mut self, weights: &[f32]) -> f64;
}

/// The model a federation learns.
#[derive(Debug, Clone, PartialEq)]
pub struct Blueprint {
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
            Self::Exploring(exploring) => Self::Exploring(Exploring {
                stage: exploring.stage.saved(),
                history: exploring.history.clone(),
                watched: exploring.watched.clone(),
                rounds: exploring.rounds,
            }),
            Self::Exploiting(exploiting) => Self::Exploiting(Exploiting {
                stage: exploiting.stage.saved(),
                temperature: exploiting.temperature,
                sampler: exploiting.sampler.clone(),
                probabilities: exploiting.probabilities.clone(),
                explore: exploiting.explore,
            }),
            other => other.clone(),
        }
    }
}

impl Federation {
    /// A federation that nobody has joined yet.
    pub fn new(rules: Rules, blueprint: Blueprint) -> Self {
        let rng = ChaCha8Rng::seed_from_u64(rules.federation.seed);
        let shared = Shared {
            rules,
            graph: Graph::new(blueprint.graph, blueprint.onnx),
            roster: Roster::default(),
            latest: Weights::new(blueprint.weights),
            rng,
            round: 0,
            paused: false,
            refused: BTreeMap::new(),
        };
        Self { shared, phase: Phase::Enrolling(Enrolling::default()) }
    }

    /// Takes in what happened at `now`.
    pub fn step(self, now: Tick, input: Input) -> (Self, Vec<Effect>) {
        self.step_examined(now, input, None)
    }

    /// The same, with somebody to score models if the utility asks for it.
    pub fn step_examined(
        mut self,
        now: Tick,
        input: Input,
        examiner: Option<&mut (dyn Examiner + '_)>,
    ) -> (Self, Vec<Effect>) {
        let mut out = Outbox::default();
        match input {
            Input::Status { node, status } => self.status(node, status, now, &mut out),
            Input::Answer { node, answer } => self.answer(node, answer, now, &mut out),
            Input::Malformed { node } => self.malformed(node, &mut out),
            Input::Command(command) => self.command(command, &mut out),
            Input::LinkRestored => self.ask_again(now, &mut out),
            Input::Tick => self.expire(now),
        }
        self = self.advance(now, examiner, &mut out);
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
    pub fn failure(&self) -> Option<&Cause> {
        match &self.phase {
            Phase::Failed(failed) => Some(&failed.cause),
            _ => None,
        }
    }

    /// The round that is open, or the last one; 0 before the first.
    pub fn round(&self) -> u32 {
        self.shared.round
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

    fn advance(
        mut self,
        now: Tick,
        mut examiner: Option<&mut (dyn Examiner + '_)>,
        out: &mut Outbox,
    ) -> Self {
        loop {
            let Self { mut shared, phase } = self;
            let examiner = examiner.as_deref_mut();
            let (phase, moved) = match phase {
                Phase::Enrolling(enrolling) if enrolling.is_complete(&shared) => {
                    (enrolling.begin(&mut shared, now), true)
                }
                Phase::Exploring(mut exploring) => match exploring.stage {
                    Stage::Open(round) if round.is_over() => {
                        exploring.stage = Stage::Resting { until: now };
                        (exploring.close(round, &mut shared, now, examiner, out), true)
                    }
                    Stage::Resting { until } if shared.may_open(now, until) => {
                        (Phase::Exploring(exploring.open(&mut shared, now, out)), false)
                    }
                    stage => (Phase::Exploring(Exploring { stage, ..exploring }), false),
                },
                Phase::Exploiting(mut exploiting) => match exploiting.stage {
                    Stage::Open(round) if round.is_over() => {
                        exploiting.stage = Stage::Resting { until: now };
                        (exploiting.close(round, &mut shared, now, examiner, out), true)
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

    fn status(&mut self, node: NodeId, status: Status, now: Tick, out: &mut Outbox) {
        match self.shared.roster.find(&node) {
            Place::Member(column) => self.member_status(node, column, &status, now, out),
            Place::Lobby(candidate) => {
                if candidate.session.heed(&status) {
                    match status.life {
                        Life::Born(birth) => {
                            candidate.holds = birth.weights;
                            self.greet(node, out);
                        }
                        Life::Dead => self.shared.roster.dismiss(&node),
                    }
                }
            }
            Place::Stranger => {
                if let Life::Born(birth) = status.life {
                    self.knock(node, status.session, birth, out);
                }
            }
        }
    }

    fn member_status(&mut self, node: NodeId, column: usize, status: &Status, now: Tick, out: &mut Outbox) {
        let member = self.shared.roster.member_mut(column);
        if !member.session.heed(status) {
            return;
        }
        if member.is_removed() {
            if member.is_alive() {
                self.shared.refuse(node, Some(column), self.shared.round, Refusal::Unknown, out);
            }
            return;
        }
        let round = self.phase.stage_mut().and_then(Stage::round_mut);
        let part = round.and_then(|round| round.draw.place(column).map(|place| (round, place)));
        match &status.life {
            Life::Born(birth) => {
                member.holds = birth.weights;
                if let Some((round, place)) = part {
                    round.await_again(place);
                    if !round.has_arrived(place) {
                        out.tasks.extend(self.shared.task(round, place, now));
                    }
                }
                self.greet(node, out);
            }
            Life::Dead => {
                if let Some((round, place)) = part {
                    round.give_up(place, Absence::Died);
                }
            }
        }
    }

    /// A node nobody has seen before wants in; it enters with the next round.
    fn knock(&mut self, node: NodeId, session: u64, birth: Birth, out: &mut Outbox) {
        let full = self.shared.roster.len() >= self.shared.rules.federation.nodes_max as usize;
        if full || !self.shared.rules.admission.welcomes(node.as_str(), &birth) {
            return self.shared.refuse(node, None, self.shared.round, Refusal::Unknown, out);
        }
        let session = Session { number: session, alive: true };
        self.shared.roster.wait(node.clone(), Candidate { session, holds: birth.weights });
        self.greet(node, out);
    }

    /// Retained messages are a convenience: every birth is answered with the manifest.
    fn greet(&self, node: NodeId, out: &mut Outbox) {
        out.announcements.push(Effect::Manifest { to: Some(node), manifest: self.manifest() });
    }

    fn answer(&mut self, node: NodeId, answer: Answer, now: Tick, out: &mut Outbox) {
        let column = match self.shared.roster.find(&node) {
            Place::Member(column) => column,
            Place::Lobby(_) if matches!(answer, Answer::NeedGraph(_)) => return self.graph(node, out),
            Place::Lobby(_) | Place::Stranger => {
                return self.shared.refuse(node, None, self.shared.round, Refusal::Unknown, out);
            }
        };
        if self.shared.roster.member(column).is_removed() {
            return self.shared.refuse(node, Some(column), self.shared.round, Refusal::Unknown, out);
        }
        match answer {
            Answer::Update(update) => self.update(node, column, update, out),
            Answer::Decline { round, reason } => {
                if let Ok((open, place)) = part(&mut self.phase, &self.shared, column, round) {
                    open.give_up(place, Absence::Declined(reason));
                }
            }
            Answer::NeedWeights { round } => match part(&mut self.phase, &self.shared, column, round) {
                Ok((open, place)) => {
                    self.shared.roster.member_mut(column).holds = None;
                    out.tasks.extend(self.shared.task(open, place, now));
                }
                Err(refusal) => self.shared.refuse(node, Some(column), round, refusal, out),
            },
            Answer::NeedGraph(_) => self.graph(node, out),
            // Chunks are between the links.
            Answer::Resend(_) => {}
        }
    }

    fn graph(&self, node: NodeId, out: &mut Outbox) {
        let Graph { digest, onnx, .. } = &self.shared.graph;
        out.publish(node, Dispatch::Graph { graph: *digest, onnx: Arc::clone(onnx) });
    }

    fn update(&mut self, node: NodeId, column: usize, update: Update, out: &mut Outbox) {
        let round = update.round;
        let refusal = match part(&mut self.phase, &self.shared, column, round) {
            Ok((open, place)) if open.has_arrived(place) => Refusal::Repeated,
            Ok((open, place)) => match admit(update, self.shared.limits()) {
                Ok(accepted) => {
                    open.arrive(place, accepted);
                    let digest = self.shared.latest.digest();
                    let member = self.shared.roster.member_mut(column);
                    member.holds = Some(digest);
                    member.last_counted = Some(round);
                    member.session.alive = true;
                    return;
                }
                Err(refusal) => {
                    open.give_up(place, Absence::Refused(refusal));
                    refusal
                }
            },
            Err(Refusal::Late) if self.shared.roster.member(column).last_counted == Some(round) => {
                Refusal::Repeated
            }
            Err(refusal) => refusal,
        };
        self.shared.refuse(node, Some(column), round, refusal, out);
    }

    fn malformed(&mut self, node: NodeId, out: &mut Outbox) {
        let column = match self.shared.roster.find(&node) {
            Place::Member(column) => Some(column),
            Place::Lobby(_) | Place::Stranger => None,
        };
        self.shared.refuse(node, column, self.shared.round, Refusal::Malformed, out);
    }

    fn command(&mut self, command: Command, out: &mut Outbox) {
        match (command, &mut self.phase) {
            (_, Phase::Finished(_) | Phase::Failed(_)) => return,
            (Command::Begin, Phase::Enrolling(enrolling)) => enrolling.begin = true,
            (Command::Explore, Phase::Exploiting(exploiting)) => {
                exploiting.explore = self.shared.rules.federation.strategy == Strategy::Evenhand;
            }
            (Command::Begin | Command::Explore, _) => return,
            (Command::Pause, _) => self.shared.paused = true,
            (Command::Resume, _) => self.shared.paused = false,
            (Command::Finish, phase) => *phase = Phase::Finished(Finished),
            (Command::Remove(node), phase) => match self.shared.roster.find(&node) {
                Place::Member(column) => {
                    let round = self.shared.round;
                    self.shared.roster.member_mut(column).removed.get_or_insert(round);
                    let round = phase.stage_mut().and_then(Stage::round_mut);
                    if let Some((round, place)) = round.and_then(|r| r.draw.place(column).map(|p| (r, p))) {
                        round.give_up(place, Absence::Died);
                    }
                }
                Place::Lobby(_) => self.shared.roster.dismiss(&node),
                Place::Stranger => return,
            },
        }
        out.persist = true;
        out.manifest = true;
    }

    /// Announces what is under way once more, with a full deadline for everybody.
    fn ask_again(&mut self, now: Tick, out: &mut Outbox) {
        out.manifest = true;
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

    fn expire(&mut self, now: Tick) {
        if let Some(round) = self.phase.stage_mut().and_then(Stage::round_mut)
            && round.deadline().is_some_and(|deadline| now >= deadline)
        {
            round.expire();
        }
    }
}

/// The open round and the member's place in it, if the answer belongs there.
fn part<'a>(
    phase: &'a mut Phase,
    shared: &Shared,
    column: usize,
    round: u32,
) -> Result<(&'a mut round::Round, usize), Refusal> {
    match phase.stage_mut().and_then(Stage::round_mut) {
        Some(open) if open.draw.round() == round => {
            let place = open.draw.place(column).ok_or(Refusal::NotDrawn)?;
            Ok((open, place))
        }
        _ if round > shared.round || round == 0 => Err(Refusal::NotDrawn),
        _ => Err(Refusal::Late),
    }
}

impl Shared {
    fn limits(&self) -> Limits {
        Limits {
            dimension: self.latest.values().len(),
            samples_max: self.rules.training.samples_max,
            norm_max: self.rules.admission.norm_max,
            norm: self.rules.admission.norm,
        }
    }
}
