//! Messages of nodes: accepted or refused.

use std::sync::Arc;

use evenhand_protocol::identity::NodeId;
use evenhand_protocol::message::{Answer, Birth, Life, Measured, Refusal, Status, Update};

use crate::Federation;
use crate::admission::UpdateLimits;
use crate::config::Policy;
use crate::effect::{Effect, EffectBuffer, OrderPayload};
use crate::index::{DrawSlot, NodeIndex};
use crate::input::Tick;
use crate::measuring::AcceptedMeasurement;
use crate::member::{NodeSession, Pending};
use crate::phase::FederationPhase;
use crate::roster::RosterEntry;
use crate::round::{Absence, OpenRound};

impl Federation {
    /// A node came online or went offline.
    pub(crate) fn status(&mut self, node: NodeId, status: Status, now: Tick, out: &mut EffectBuffer) {
        match self.roster.find(&node) {
            RosterEntry::Member(index) => self.member_status(node, index, &status, now, out),
            RosterEntry::Pending(pending) => {
                if !pending.session.apply(&status) {
                    return;
                }
                self.unconfirmed.confirm(&node);
                match status.life {
                    Life::Born(birth) if self.rules.admission.admits(&node, &birth) => {
                        pending.holds = birth.weights;
                        self.send_manifest(node, None, out);
                    }
                    Life::Born(_) => {
                        self.roster.drop_pending(&node);
                        self.refuse(node, None, self.attempt, Refusal::Unknown, out);
                    }
                    Life::Dead => self.roster.drop_pending(&node),
                }
            }
            RosterEntry::Unknown => {
                if let Life::Born(birth) = status.life {
                    self.request_join(node, status.session, &birth, out);
                }
            }
        }
    }

    fn member_status(
        &mut self,
        node: NodeId,
        index: NodeIndex,
        status: &Status,
        now: Tick,
        out: &mut EffectBuffer,
    ) {
        let member = self.roster.member_mut(index);
        if !member.session.apply(status) {
            return;
        }
        self.unconfirmed.confirm(&node);
        if member.is_removed() {
            if member.is_online() {
                self.refuse(node, Some(index), self.attempt, Refusal::Unknown, out);
            }
            return;
        }
        let open = self.phase.round_mut();
        match &status.life {
            // The operator may have changed the admission since it enrolled.
            Life::Born(birth) if !self.rules.admission.admits(&node, birth) => {
                member.suspend();
                if let Some(round) = open {
                    round.leave(index, Absence::Refused(Refusal::Unknown));
                }
                self.refuse(node, Some(index), self.attempt, Refusal::Unknown, out);
            }
            Life::Born(birth) => {
                member.suspended = false;
                member.holds = birth.weights;
                if let Some(round) = open {
                    round.rejoin(index);
                }
                if self.send_manifest(node, Some(index), out)
                    && let Some(round) = self.phase.round()
                {
                    out.tasks.extend(self.orders(round, index, now));
                }
            }
            Life::Dead => {
                if let Some(round) = open {
                    round.leave(index, Absence::Disconnected);
                }
            }
        }
    }

    /// An unknown node wants to join; it is enrolled with the next round.
    fn request_join(&mut self, node: NodeId, session: u64, birth: &Birth, out: &mut EffectBuffer) {
        let full = self.roster.len() >= self.rules.federation.nodes_max as usize;
        if full || !self.rules.admission.admits(&node, birth) {
            return self.refuse(node, None, self.attempt, Refusal::Unknown, out);
        }
        let session = NodeSession { number: session, online: true };
        self.roster.add_pending(node.clone(), Pending { session, holds: birth.weights });
        self.send_manifest(node, None, out);
    }

    /// Answers a birth with the manifest, since retained messages are a convenience only, unless the node exceeds its rate
    /// limit. Returns whether it was answered.
    fn send_manifest(&mut self, node: NodeId, index: Option<NodeIndex>, out: &mut EffectBuffer) -> bool {
        let within = self.within_rate_limit(&node);
        match within {
            true => out.announcements.push(Effect::Manifest { to: Some(node), manifest: self.manifest() }),
            false => self.refuse(node, index, self.attempt, Refusal::Rate, out),
        }
        within
    }

    /// Suspends the members that the operator has taken off the list and, where a token is required, those that are offline: they
    /// may not have shown it. They get no further model before they come online and are admitted.
    pub(crate) fn suspend_unproven(&mut self) {
        let admission = &self.rules.admission;
        self.roster.retain_pending(|node| admission.lists(node));
        for (index, member) in self.roster.members_mut().enumerate() {
            let listed = admission.lists(member.id());
            if listed && (member.is_online() || admission.token_sha256.is_empty()) {
                continue;
            }
            member.suspend();
            if !listed && let Some(round) = self.phase.round_mut() {
                round.leave(NodeIndex(index), Absence::Refused(Refusal::Unknown));
            }
        }
    }

    /// Marks every present node as unconfirmed: it may have left while the link was down.
    pub(crate) fn mark_all_unconfirmed(&mut self) {
        self.unconfirmed.reset(self.roster.names_present());
    }

    /// Marks a node as unconfirmed: a retained message does not show that it is still online.
    pub(crate) fn mark_unconfirmed(&mut self, node: NodeId) {
        if self.roster.contains(&node) {
            self.unconfirmed.mark(node);
        }
    }

    /// Ends the round at its deadline. A node that has been silent for some rounds since the link was restored counts as offline
    /// until it speaks again; under the policy "continuous" any silent node, which would hold every round to its deadline.
    pub(crate) fn expire(&mut self, now: Tick) {
        let Some(round) = self.phase.round_mut() else { return };
        if round.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        for node in round.awaited_nodes() {
            let member = self.roster.member_mut(node);
            if self.rules.federation.policy == Policy::Continuous {
                self.unconfirmed.mark(member.id.clone());
            }
            member.session.online &= self.unconfirmed.miss(&member.id);
        }
        round.expire();
    }

    /// A node's answer to an order, or its request for model or graph.
    pub(crate) fn answer(&mut self, node: NodeId, answer: Answer, now: Tick, out: &mut EffectBuffer) {
        let unconfirmed = self.unconfirmed.confirm(&node);
        let index = match self.roster.find(&node) {
            RosterEntry::Member(index) => index,
            RosterEntry::Pending(_) if matches!(answer, Answer::NeedGraph(_)) => {
                return match self.within_rate_limit(&node) {
                    true => self.send_graph(node, out),
                    false => self.refuse(node, None, self.attempt, Refusal::Rate, out),
                };
            }
            RosterEntry::Pending(_) | RosterEntry::Unknown => {
                return self.refuse(node, None, self.attempt, Refusal::Unknown, out);
            }
        };
        let member = self.roster.member_mut(index);
        if member.is_removed() || member.suspended {
            return self.refuse(node, Some(index), self.attempt, Refusal::Unknown, out);
        }
        // Whoever answers is there, whatever was said of it.
        let was_away = !member.session.online;
        if unconfirmed || self.rules.federation.policy == Policy::Continuous {
            member.session.online = true;
        }
        if !self.within_rate_limit(&node) {
            return self.refuse(node, Some(index), self.attempt, Refusal::Rate, out);
        }
        match answer {
            Answer::Update(update) => self.update(node, index, update, out),
            Answer::Measured(measured) => {
                // It was asked for a sign of life only.
                let asked = place_in_round(&mut self.phase, self.attempt, index, measured.round).is_ok();
                if asked || !was_away {
                    self.reference_gradient(node, index, &measured, out);
                }
            }
            Answer::Unmeasured { round, reason } => {
                if let Ok((open, place)) = place_in_round(&mut self.phase, self.attempt, index, round) {
                    open.measurements.give_up(place, Absence::Declined(reason));
                }
            }
            Answer::Decline { round, reason } => {
                if let Ok((open, slot)) = slot_in_round(&mut self.phase, self.attempt, index, round) {
                    open.give_up(slot, Absence::Declined(reason));
                }
            }
            Answer::NeedWeights { round } => match slot_in_round(&mut self.phase, self.attempt, index, round)
            {
                Ok((_, slot)) => {
                    self.roster.member_mut(index).holds = None;
                    if let Some(open) = self.phase.round() {
                        out.tasks.extend(self.task(open, slot, now));
                    }
                }
                Err(refusal) => self.refuse(node, Some(index), round, refusal, out),
            },
            Answer::NeedGraph(_) => self.send_graph(node, out),
            // Chunks are the links' affair.
            Answer::Resend(_) => {}
        }
    }

    fn send_graph(&self, node: NodeId, out: &mut EffectBuffer) {
        let payload = OrderPayload::Graph { graph: self.file.graph, onnx: Arc::clone(&self.file.onnx) };
        out.publish(node, payload);
    }

    fn update(&mut self, node: NodeId, index: NodeIndex, update: Update, out: &mut EffectBuffer) {
        let round = update.round;
        let limits = UpdateLimits::new(&self.rules, self.model.dimension());
        let refusal = match slot_in_round(&mut self.phase, self.attempt, index, round) {
            Ok((open, slot)) if open.has_arrived(slot) => Refusal::Repeated,
            Ok((open, slot)) => match limits.admit(update) {
                Ok(accepted) => {
                    open.arrive(slot, accepted);
                    let digest = self.model.of(index).digest();
                    let member = self.roster.member_mut(index);
                    member.holds = Some(digest);
                    member.last_counted = Some(round);
                    member.session.online = true;
                    return;
                }
                Err(refusal) => {
                    open.give_up(slot, Absence::Refused(refusal));
                    refusal
                }
            },
            Err(Refusal::Late) if self.roster.member(index).last_counted == Some(round) => Refusal::Repeated,
            Err(refusal) => refusal,
        };
        self.refuse(node, Some(index), round, refusal, out);
    }

    fn reference_gradient(
        &mut self,
        node: NodeId,
        index: NodeIndex,
        measured: &Measured,
        out: &mut EffectBuffer,
    ) {
        let parameters = self.model.dimension();
        let refusal = match place_in_round(&mut self.phase, self.attempt, index, measured.round) {
            Ok((open, place)) if open.measurements.has_arrived(place) => Refusal::Repeated,
            Ok((open, place)) => match AcceptedMeasurement::admit(measured, &self.rules, parameters) {
                Ok(accepted) => {
                    open.measurements.arrive(place, accepted);
                    self.roster.member_mut(index).session.online = true;
                    return;
                }
                Err(refusal) => {
                    open.measurements.give_up(place, Absence::Refused(refusal));
                    refusal
                }
            },
            Err(refusal) => refusal,
        };
        self.refuse(node, Some(index), measured.round, refusal, out);
    }

    /// Bytes of a node that do not decode.
    pub(crate) fn malformed(&mut self, node: NodeId, out: &mut EffectBuffer) {
        let (index, within) = match self.roster.find(&node) {
            RosterEntry::Member(index) => (Some(index), self.within_rate_limit(&node)),
            RosterEntry::Pending(_) => (None, self.within_rate_limit(&node)),
            RosterEntry::Unknown => (None, true),
        };
        let refusal = if within { Refusal::Malformed } else { Refusal::Rate };
        self.refuse(node, index, self.attempt, refusal, out);
    }

    fn within_rate_limit(&mut self, node: &NodeId) -> bool {
        self.rate_limiter.within_rate_limit(node, self.rules.admission.messages_max)
    }

    fn refuse(
        &mut self,
        node: NodeId,
        index: Option<NodeIndex>,
        round: u32,
        refusal: Refusal,
        out: &mut EffectBuffer,
    ) {
        self.rate_limiter.refuse(node, index, round, refusal, out);
    }
}

/// The open round and the node's slot in it, if the answer belongs there; `latest` is the number of the latest attempt.
fn slot_in_round(
    phase: &mut FederationPhase,
    latest: u32,
    node: NodeIndex,
    round: u32,
) -> Result<(&mut OpenRound, DrawSlot), Refusal> {
    let open = open_round(phase, latest, round)?;
    let slot = open.draw.slot(node).ok_or(Refusal::NotDrawn)?;
    Ok((open, slot))
}

/// The open round and the node's place among those asked for a reference gradient, if the answer belongs there.
fn place_in_round(
    phase: &mut FederationPhase,
    latest: u32,
    node: NodeIndex,
    round: u32,
) -> Result<(&mut OpenRound, usize), Refusal> {
    let open = open_round(phase, latest, round)?;
    let place = open.draw.measure_place(node).ok_or(Refusal::NotDrawn)?;
    Ok((open, place))
}

/// The open round, if an answer for `round` belongs to it.
fn open_round(phase: &mut FederationPhase, latest: u32, round: u32) -> Result<&mut OpenRound, Refusal> {
    match phase.round_mut() {
        Some(open) if open.draw.attempt() == round => Ok(open),
        _ if round > latest || round == 0 => Err(Refusal::NotDrawn),
        _ => Err(Refusal::Late),
    }
}
