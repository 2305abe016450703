//! The life of a round: opened, collected, evaluated, aggregated, closed.

use evenhand_fairness::StopVerdict;
use evenhand_protocol::message::{Account, Phase, Why};

use crate::aggregation::{ModelStep, aggregate};
use crate::closed::{ClosedRound, NodeResponse, NodeRound, RoundEvidence};
use crate::collected::CollectedRound;
use crate::config::Policy;
use crate::drift::DriftTest;
use crate::effect::{Effect, EffectBuffer, OrderPayload};
use crate::evaluation::{Evaluation, evaluate};
use crate::exploiting::Exploiting;
use crate::exploring::Exploring;
use crate::failed::{Failed, FailureCause};
use crate::finished::Finished;
use crate::index::{DrawSlot, NodeIndex};
use crate::input::Tick;
use crate::phase::{Assessment, FederationPhase};
use crate::round::{OpenRound, RoundDeadline, RoundProgress, RoundStage};
use crate::running::ContinuousPhase;
use crate::standing::Standing;
use crate::strategy::Participation;
use crate::{Federation, Member};

/// A member that counts as offline is asked for a sign of life once in so many rounds.
const ABSENT_ASKED_EVERY: u32 = 10;

impl Federation {
    /// Moves on as far as the state allows: begins, closes the round that is over, opens the next one.
    pub(crate) fn advance(&mut self, now: Tick, out: &mut EffectBuffer) {
        while self.advance_once(now, out) {
            out.manifest = true;
        }
    }

    /// One transition; returns whether another may follow.
    fn advance_once(&mut self, now: Tick, out: &mut EffectBuffer) -> bool {
        if let FederationPhase::Enrolling(enrolling) = &self.phase {
            let begins = !self.paused && enrolling.is_complete(&self.roster, &self.rules);
            if begins {
                self.phase = self.first_phase(now);
            }
            return begins;
        }
        self.draw_substitutes(now, out);
        let Some(stage) = self.phase.stage_mut() else { return false };
        match stage.take_if_over(now) {
            RoundProgress::Over(round) => {
                if let Err(cause) = self.close_round(*round, now, out) {
                    self.phase = FederationPhase::Failed(Failed { cause });
                    out.state_changed();
                }
                true
            }
            RoundProgress::Resting { until } => {
                if matches!(&self.phase, FederationPhase::Exploiting(exploiting) if exploiting.explore) {
                    self.phase = FederationPhase::Exploring(Exploring::again(&mut self.roster, until));
                    return true;
                }
                if !self.paused && now >= until && self.roster.present() > 0 {
                    self.open_next_round(now, out);
                }
                false
            }
            RoundProgress::Open => false,
        }
    }

    /// Exploring, unless the strategy does without it.
    fn first_phase(&self, now: Tick) -> FederationPhase {
        match self.strategy.participation() {
            Participation::ExploreThenDraw => match self.rules.federation.policy {
                Policy::Continuous => {
                    FederationPhase::Running(Box::new(ContinuousPhase::new(&self.rules, now)))
                }
                Policy::Paper => FederationPhase::Exploring(Exploring::new(now)),
            },
            _ => {
                let drift = DriftTest::default();
                FederationPhase::Exploiting(Exploiting::new(&self.roster, &self.rules, now, drift))
            }
        }
    }

    /// Enrols the pending nodes and asks those that the phase draws: saved first, then announced.
    fn open_next_round(&mut self, now: Tick, out: &mut EffectBuffer) {
        let before = match &self.phase {
            FederationPhase::Running(running) => Some(running.before_draw(&self.rng, &self.roster)),
            _ => None,
        };
        self.enrol_pending();
        let round = self.round + 1;
        let draw = match &mut self.phase {
            FederationPhase::Exploring(exploring) => {
                exploring.draw(round, &mut self.roster, &self.rules, &mut self.rng)
            }
            FederationPhase::Exploiting(exploiting) => {
                exploiting.draw(round, &mut self.roster, &self.rules, &*self.strategy, &mut self.rng)
            }
            FederationPhase::Running(running) => {
                running.draw(round, &mut self.roster, &self.rules, &mut self.rng)
            }
            _ => return,
        };
        self.round = round;
        self.attempt += 1;
        // A node that waited long, or lost its broker often, may speak in the round all the same.
        self.rate_limiter.reset_counts();
        self.model.equip_newcomers(&*self.strategy, self.roster.members().len());
        let deadline = RoundDeadline::new(now, self.rules.federation.round_deadline_ms);
        let mut open = OpenRound::new(draw.in_attempt(self.attempt), now, Some(deadline));
        open.before = before.map(Box::new);
        out.state_changed();
        self.ask(&open, now, out);
        self.ask_absent(&open, now, out);
        if let Some(stage) = self.phase.stage_mut() {
            *stage = RoundStage::Open(Box::new(open));
        }
    }

    /// Enrols the pending nodes: as founders before the first round, as newcomers after it.
    fn enrol_pending(&mut self) {
        let standing = self.entry_standing();
        self.roster.enrol_pending(standing);
    }

    /// The standing with which a node is enrolled now.
    pub(crate) fn entry_standing(&self) -> Standing {
        let explores = self.strategy.participation() == Participation::ExploreThenDraw;
        if self.round == 0 || !explores {
            Standing::founder()
        } else {
            let rounds = match self.rules.federation.policy {
                Policy::Continuous => self.rules.continuous.newcomer_rounds,
                Policy::Paper => self.rules.exploring.newcomer_rounds,
            };
            Standing::entering(self.roster.mean_standing(), rounds)
        }
    }

    /// Sends every awaited node that is present its orders.
    pub(crate) fn ask(&self, round: &OpenRound, now: Tick, out: &mut EffectBuffer) {
        for node in round.awaited_nodes() {
            if self.roster.member(node).is_present() {
                out.tasks.extend(self.orders(round, node, now));
            }
        }
    }

    /// Asks members that count as offline for a sign of life, each in every tenth round: a death may be forged or have been
    /// a broker's mistake, and who answers is back. Nobody waits for them.
    fn ask_absent(&self, round: &OpenRound, now: Tick, out: &mut EffectBuffer) {
        let Some(measure) = round.draw.measure() else { return };
        let request = measure.request(round.draw.attempt(), &self.rules, left(round, now));
        for (node, member) in self.roster.iter() {
            let due = (node.get() as u32).wrapping_add(self.attempt).is_multiple_of(ABSENT_ASKED_EVERY);
            if due && !member.is_online() && !member.is_removed() && !member.suspended {
                let payload = OrderPayload::Measure(request.clone());
                out.tasks.push(Effect::Publish { node: member.id().clone(), payload });
            }
        }
    }

    /// Answers that are still expected from one node in the round.
    pub(crate) fn orders(&self, round: &OpenRound, node: NodeIndex, now: Tick) -> Vec<Effect> {
        let place = round.draw.measure_place(node).filter(|place| round.measurements.is_awaited(*place));
        let measure = place.and_then(|_| {
            let request = round.draw.measure()?.request(round.draw.attempt(), &self.rules, left(round, now));
            let node = self.roster.member(node).id().clone();
            Some(Effect::Publish { node, payload: OrderPayload::Measure(request) })
        });
        let slot = round.draw.slot(node).filter(|slot| !round.has_arrived(*slot));
        measure.into_iter().chain(slot.and_then(|slot| self.task(round, slot, now))).collect()
    }

    /// The task of one slot of the draw.
    pub(crate) fn task(&self, round: &OpenRound, slot: DrawSlot, now: Tick) -> Option<Effect> {
        let node = round.draw.node(slot);
        let member = self.roster.member(node);
        let training = &self.rules.training;
        let task = round.draw.task(slot, member.holds, self.model.of(node), training, left(round, now))?;
        Some(Effect::Publish { node: member.id().clone(), payload: OrderPayload::Train(task) })
    }

    /// One round from its answers to its record, then on to what comes next.
    fn close_round(
        &mut self,
        mut round: OpenRound,
        now: Tick,
        out: &mut EffectBuffer,
    ) -> Result<(), FailureCause> {
        let unanswered = round.is_unanswered();
        if let Some(before) = round.before.take_if(|_| unanswered) {
            let until = self.next_opening(&CollectedRound::new(round.clone(), &self.rules.admission));
            self.abandon(&round, *before, until, out);
            return Ok(());
        }
        let mut collected = CollectedRound::new(round, &self.rules.admission);
        let evaluation = self.evaluate(&collected);
        let step = self.aggregate(&collected, &evaluation)?;
        let assessment = match &mut self.phase {
            FederationPhase::Exploring(exploring) => {
                exploring.assess(&collected, &evaluation, &mut self.roster, &self.rules)
            }
            FederationPhase::Exploiting(exploiting) => {
                exploiting.assess(&collected, &evaluation, &mut self.roster, &self.rules, &*self.strategy)
            }
            FederationPhase::Running(running) => {
                running.assess(&mut collected, &mut self.roster, &self.rules)
            }
            _ => return Ok(()),
        };
        let until = self.next_opening(&collected);
        self.record(collected, &assessment, step, now, out);
        self.enter_next_phase(assessment.verdict, until);
        Ok(())
    }

    /// Moves the models on; under the policy "continuous", past the guard.
    fn aggregate(
        &mut self,
        round: &CollectedRound,
        evaluation: &Evaluation,
    ) -> Result<ModelStep, FailureCause> {
        let (strategy, training) = (&mut *self.strategy, &self.rules.training);
        let guard = match &mut self.phase {
            FederationPhase::Running(running) => Some(&mut running.guard),
            _ => None,
        };
        aggregate(round, evaluation, &mut self.model, strategy, &self.roster, training, guard)
    }

    /// Contributions, where the phase or the strategy wants them.
    fn evaluate(&mut self, round: &CollectedRound) -> Evaluation {
        let participation = self.strategy.participation();
        let wanted = match self.phase {
            FederationPhase::Exploring(_) => true,
            FederationPhase::Running(_) => return Evaluation::default(),
            _ => {
                participation == Participation::DrawMeasured
                    || round.asked_for(Why::Newcomer)
                    || round.asked_for(Why::Exploring)
            }
        };
        if !(wanted || participation.measures()) {
            return Evaluation::default();
        }
        evaluate(round, wanted, &mut self.measurement, &mut self.rng)
    }

    /// Time at which the next round may open: by the interval, and under the policy "continuous" by the pace of the meters. Otherwise
    /// one in which nothing arrived is not followed before its deadline, so that nodes without data do not use up the rounds.
    fn next_opening(&mut self, round: &CollectedRound) -> Tick {
        let general = &self.rules.federation;
        if let FederationPhase::Running(running) = &mut self.phase {
            return running.pace.next_opening(round, general);
        }
        let apart = if round.is_empty() { general.round_deadline_ms } else { 0 };
        round.opened.plus_ms(general.round_interval_ms.max(apart))
    }

    /// Records the round, and sends each present node its account.
    fn record(
        &mut self,
        mut round: CollectedRound,
        assessment: &Assessment,
        step: ModelStep,
        now: Tick,
        out: &mut EffectBuffer,
    ) {
        let nodes = self.node_rounds(&round, assessment);
        let accounts: Vec<Account> = match &mut self.phase {
            FederationPhase::Running(running) => running.statements.accounts(self.round, &nodes),
            _ => nodes.iter().map(|node| node.account(self.round)).collect(),
        };
        for (member, account) in self.roster.members().iter().zip(accounts) {
            if member.is_present() {
                out.announcements.push(Effect::Account { node: member.id().clone(), account });
            }
        }
        let closed = ClosedRound {
            round: round.draw.round(),
            phase: match self.phase {
                FederationPhase::Exploring(_) => Phase::Exploring,
                FederationPhase::Running(_) => Phase::Running,
                _ => Phase::Exploiting,
            },
            opened: round.opened,
            closed: now,
            weights_before: step.before,
            weights_after: step.after,
            node_models_after: step.node_models_after,
            temperature: assessment.temperature,
            loss: round.loss(),
            unmeasured: assessment.unmeasured.clone(),
            intervention: step.intervention,
            verdict: assessment.verdict.clone(),
            untested: assessment.untested.clone(),
            nodes,
            unknown_refusals: self.rate_limiter.refusals_of(None),
        };
        self.rate_limiter.reset();
        out.closed.push(RoundEvidence {
            round: closed,
            weights: self.model.latest.clone(),
            node_models: self.model.node_models.clone(),
            measurements: round.take_measurements(),
            updates: round.arrivals.into_iter().map(|arrival| (arrival.node, arrival.update)).collect(),
        });
        out.persist = true;
    }

    fn node_rounds(&self, round: &CollectedRound, assessment: &Assessment) -> Vec<NodeRound> {
        let has_twin = match &self.phase {
            FederationPhase::Running(running) => running.has_twin(self.roster.members().len()),
            _ => Vec::new(),
        };
        let of_member = |(node, member): (NodeIndex, &Member)| {
            let credited = assessment.credited.get(node);
            NodeRound {
                node: member.id().clone(),
                why: round.draw.why(node),
                response: round
                    .draw
                    .slot(node)
                    .map_or(NodeResponse::NotAsked, |slot| round.responses[slot.0]),
                measured: round.measure_response(node),
                has_twin: has_twin.get(node.get()).copied().unwrap_or(false),
                contribution: credited.map(|credited| credited.value),
                contribution_error: credited.and_then(|credited| credited.standard_error),
                standing: self.strategy.node_score(node).unwrap_or(member.standing.value()),
                standing_error: member.standing.error(),
                sampling_probability: assessment.probabilities.get(node.get()).copied().unwrap_or(0.0),
                staleness: member.staleness(self.round),
                last_drawn: member.last_drawn,
                drawn: member.drawn,
                removed: member.removed,
                refusals: self.rate_limiter.refusals_of(Some(node)),
            }
        };
        self.roster.iter().map(of_member).collect()
    }

    /// Goes on in this phase, over to exploiting, or ends after the last round.
    fn enter_next_phase(&mut self, verdict: Option<StopVerdict>, until: Tick) {
        let phase = std::mem::replace(&mut self.phase, FederationPhase::Finished(Finished::default()));
        let next = match phase {
            FederationPhase::Exploring(exploring) if exploring.is_over(verdict.as_ref(), &self.rules) => {
                FederationPhase::Exploiting(exploring.settle(verdict, &self.roster, &self.rules, until))
            }
            mut phase => {
                if let Some(stage) = phase.stage_mut() {
                    *stage = RoundStage::Resting { until };
                }
                phase
            }
        };
        self.phase = if self.rules.federation.ends_with(self.round) {
            FederationPhase::Finished(Finished { resume: Some(Box::new(next)) })
        } else {
            next
        };
    }
}

/// Milliseconds left until the deadline of a round.
fn left(round: &OpenRound, now: Tick) -> u32 {
    let left = round.deadline().map_or(0, |deadline| deadline.ms_since(now));
    u32::try_from(left).unwrap_or(u32::MAX)
}
