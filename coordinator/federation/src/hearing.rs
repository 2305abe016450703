//! What nodes say, taken in or refused.

use std::sync::Arc;

use evenhand_protocol::identity::NodeId;
use evenhand_protocol::message::{Answer, Birth, Life, Refusal, Status, Update};

use super::admission::{AcceptedUpdate, Limits, admit};
use super::effect::{Effect, OrderPayload};
use super::input::Tick;
use super::member::{Candidate, Place, Session};
use super::round::{Absence, Round, Stage};
use super::shared::{Graph, Outbox, Shared};
use super::{Federation, Phase};

/// Rounds a member may miss without a word, after the link was restored, before it counts as away.
const MISSED_MAX: u32 = 3;

impl Federation {
    pub(super) fn status(&mut self, node: NodeId, status: Status, now: Tick, out: &mut Outbox) {
        match self.shared.roster.find(&node) {
            Place::Member(column) => self.member_status(node, column, &status, now, out),
            Place::Lobby(candidate) => {
                if !candidate.session.heed(&status) {
                    return;
                }
                self.shared.unheard.remove(&node);
                match status.life {
                    Life::Born(birth) if self.shared.rules.admission.welcomes(node.as_str(), &birth) => {
                        candidate.holds = birth.weights;
                        self.greet(node, None, out);
                    }
                    Life::Born(_) => {
                        self.shared.roster.dismiss(&node);
                        self.shared.refuse(node, None, self.shared.round, Refusal::Unknown, out);
                    }
                    Life::Dead => self.shared.roster.dismiss(&node),
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
        self.shared.unheard.remove(&node);
        if member.is_removed() {
            if member.is_alive() {
                self.shared.refuse(node, Some(column), self.shared.round, Refusal::Unknown, out);
            }
            return;
        }
        let round = self.phase.stage_mut().and_then(Stage::round_mut);
        let part = round.and_then(|round| round.draw.place(column).map(|place| (round, place)));
        match &status.life {
            // The operator may have changed who is welcome since it enrolled.
            Life::Born(birth) if !self.shared.rules.admission.welcomes(node.as_str(), birth) => {
                member.bar();
                if let Some((round, place)) = part {
                    round.give_up(place, Absence::Refused(Refusal::Unknown));
                }
                self.shared.refuse(node, Some(column), self.shared.round, Refusal::Unknown, out);
            }
            Life::Born(birth) => {
                member.barred = false;
                member.holds = birth.weights;
                if let Some((round, place)) = part {
                    round.await_again(place);
                }
                if self.greet(node, Some(column), out)
                    && let Some(round) = self.phase.stage().and_then(Stage::round)
                    && let Some(place) = round.draw.place(column)
                    && !round.has_arrived(place)
                {
                    out.tasks.extend(self.shared.task(round, place, now));
                }
            }
            Life::Dead => {
                if let Some((round, place)) = part {
                    round.give_up(place, Absence::Disconnected);
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
        self.greet(node, None, out);
    }

    /// Retained messages are a convenience: every birth is answered with the manifest, unless the node was born too
    /// often. Whether it is answered.
    fn greet(&mut self, node: NodeId, column: Option<usize>, out: &mut Outbox) -> bool {
        let heard = self.shared.hears(&node);
        match heard {
            true => out.announcements.push(Effect::Manifest { to: Some(node), manifest: self.manifest() }),
            false => self.shared.refuse(node, column, self.shared.round, Refusal::Rate, out),
        }
        heard
    }

    /// Bars whom the operator has taken off the list, and, where a token is asked for, whoever is away: it may not have
    /// shown it. They get no further model before they are born and welcome.
    pub(super) fn bar_unproven(&mut self) {
        let admission = &self.shared.rules.admission;
        self.shared.roster.dismiss_unless(|node| admission.lists(node.as_str()));
        for (column, member) in self.shared.roster.members_mut().enumerate() {
            let listed = admission.lists(member.id().as_str());
            if listed && (member.is_alive() || admission.token_sha256.is_empty()) {
                continue;
            }
            member.bar();
            if !listed
                && let Some(round) = self.phase.stage_mut().and_then(Stage::round_mut)
                && let Some(place) = round.draw.place(column)
            {
                round.give_up(place, Absence::Refused(Refusal::Unknown));
            }
        }
    }

    /// Whoever is there may have left while nobody could say so.
    pub(super) fn doubt_everybody(&mut self) {
        self.shared.unheard = self.shared.roster.names_present().map(|node| (node.clone(), 0)).collect();
    }

    /// What the broker kept of a node does not show that it is still there.
    pub(super) fn doubt(&mut self, node: NodeId) {
        if self.shared.roster.contains(&node) {
            self.shared.unheard.entry(node).or_insert(0);
        }
    }

    /// The deadline has passed. Whoever has not said a word for some rounds, since the link was restored, is away.
    pub(super) fn expire(&mut self, now: Tick) {
        let Some(round) = self.phase.stage_mut().and_then(Stage::round_mut) else { return };
        if round.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        for place in round.awaited() {
            let member = self.shared.roster.member_mut(round.draw.asked()[place].member);
            if let Some(missed) = self.shared.unheard.get_mut(member.id()) {
                *missed += 1;
                member.session.alive &= *missed < MISSED_MAX;
            }
        }
        round.expire();
    }

    pub(super) fn answer(&mut self, node: NodeId, answer: Answer, now: Tick, out: &mut Outbox) {
        let doubted = self.shared.unheard.remove(&node).is_some();
        let column = match self.shared.roster.find(&node) {
            Place::Member(column) => column,
            Place::Lobby(_) if matches!(answer, Answer::NeedGraph(_)) => {
                return match self.shared.hears(&node) {
                    true => self.graph(node, out),
                    false => self.shared.refuse(node, None, self.shared.round, Refusal::Rate, out),
                };
            }
            Place::Lobby(_) | Place::Stranger => {
                return self.shared.refuse(node, None, self.shared.round, Refusal::Unknown, out);
            }
        };
        let member = self.shared.roster.member(column);
        if member.is_removed() || member.barred {
            return self.shared.refuse(node, Some(column), self.shared.round, Refusal::Unknown, out);
        }
        if doubted {
            self.shared.roster.member_mut(column).session.alive = true;
        }
        if !self.shared.hears(&node) {
            return self.shared.refuse(node, Some(column), self.shared.round, Refusal::Rate, out);
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
        out.publish(node, OrderPayload::Graph { graph: *digest, onnx: Arc::clone(onnx) });
    }

    fn update(&mut self, node: NodeId, column: usize, update: Update, out: &mut Outbox) {
        let round = update.round;
        let refusal = match part(&mut self.phase, &self.shared, column, round) {
            Ok((open, place)) if open.has_arrived(place) => Refusal::Repeated,
            Ok((open, place)) => match self.shared.admit(update) {
                Ok(accepted) => {
                    open.arrive(place, accepted);
                    let digest = self.shared.model(column).digest();
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

    pub(super) fn malformed(&mut self, node: NodeId, out: &mut Outbox) {
        let (column, heard) = match self.shared.roster.find(&node) {
            Place::Member(column) => (Some(column), self.shared.hears(&node)),
            Place::Lobby(_) => (None, self.shared.hears(&node)),
            Place::Stranger => (None, true),
        };
        let refusal = if heard { Refusal::Malformed } else { Refusal::Rate };
        self.shared.refuse(node, column, self.shared.round, refusal, out);
    }
}

/// The open round and the member's place in it, if the answer belongs there.
fn part<'a>(
    phase: &'a mut Phase,
    shared: &Shared,
    column: usize,
    round: u32,
) -> Result<(&'a mut Round, usize), Refusal> {
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
    /// Lets an update in, or says why not.
    pub(super) fn admit(&self, update: Update) -> Result<AcceptedUpdate, Refusal> {
        admit(update, self.limits())
    }

    fn limits(&self) -> Limits {
        Limits {
            dimension: self.latest.values().len(),
            samples_max: self.rules.training.samples_max,
            norm_max: self.rules.admission.norm_max,
            norm: self.rules.admission.norm,
        }
    }
}
