//! Contribution evaluation: everybody takes part until the standings are settled.

use std::borrow::Cow;

use evenhand_protocol::message::{Phase as Announced, Why};
use rand::seq::index;
use serde::{Deserialize, Serialize};

use super::draw::Draw;
use super::drift::DriftWatch;
use super::exploiting::Exploiting;
use super::failed::{Failed, FailureCause};
use super::finished::Finished;
use super::history::History;
use super::input::Tick;
use super::record::Judgement;
use super::round::{Round, Stage};
use super::shared::{Closing, Measured, Outbox, Reaped, Shared};
use super::{Member, Phase};

/// The first phase, and each later one in which contributions are measured anew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Exploring {
    pub(super) stage: Stage,
    /// φ of this exploration.
    pub(super) history: History,
    /// Columns the stop rule tests, drawn once from those asked in the first round.
    pub(super) watched: Vec<usize>,
    /// Rounds of this exploration, with those that yielded nothing.
    pub(super) rounds: u32,
}

impl Exploring {
    pub(super) fn new(until: Tick) -> Self {
        Self { stage: Stage::Resting { until }, history: History::default(), watched: Vec::new(), rounds: 0 }
    }

    /// Measures everybody anew. Standings hold until the first new measurement.
    pub(super) fn anew(shared: &mut Shared, until: Tick) -> Self {
        for member in shared.roster.members_mut() {
            member.measured = false;
            member.standing = member.standing.renewed();
        }
        Self::new(until)
    }

    /// As it is kept: see [`Stage::saved`].
    pub(super) fn saved(&self) -> Self {
        Self {
            stage: self.stage.saved(),
            history: self.history.clone(),
            watched: self.watched.clone(),
            rounds: self.rounds,
        }
    }

    /// Asks everybody who is there.
    pub(super) fn open(mut self, shared: &mut Shared, now: Tick, out: &mut Outbox) -> Self {
        shared.enrol();
        let draw = Draw::everyone(shared.round + 1, Why::Exploring, &mut shared.roster);
        for asked in draw.asked() {
            shared.roster.member_mut(asked.member).measured = true;
        }
        if self.watched.is_empty() {
            let watched = (shared.rules.exploring.watched as usize).min(draw.asked().len());
            let places = index::sample(&mut shared.rng, draw.asked().len(), watched);
            self.watched = places.iter().map(|place| draw.asked()[place].member).collect();
            self.watched.sort_unstable();
        }
        self.rounds += 1;
        self.stage = shared.open(draw, now, out);
        self
    }

    /// φ, ψ and θ_t of a round that is over; then on, or over to exploiting.
    pub(super) fn close(mut self, round: Round, shared: &mut Shared, now: Tick, out: &mut Outbox) -> Phase {
        let Reaped { harvest, told, unmeasured, next } = match shared.reap(round, |_| true) {
            Ok(reaped) => reaped,
            Err(cause) => return fail(cause, out),
        };
        let mut measured = Measured::new();
        let mut verdict = None;
        if let Some(told) = told {
            // A node that was to take part and did not has φ = 0.
            for (column, member) in shared.roster.members().iter().enumerate() {
                if member.measured && !member.is_removed() {
                    measured.insert(column, (0.0, Some(0.0)));
                }
            }
            for ((column, _), (value, error)) in
                harvest.arrivals.iter().zip(told.values.into_iter().zip(told.standard_errors))
            {
                measured.insert(*column, (value, error.is_finite().then_some(error)));
            }
            for (column, (value, _)) in &measured {
                shared.roster.member_mut(*column).standing.add(*value);
            }
            self.history.push(shared.round, shared.row(&measured));
            verdict = Some(self.judge(shared).0);
        }
        let stop = verdict.as_ref().is_some_and(|verdict| verdict.stop);
        let members = shared.roster.members().iter();
        let enrolled = members.clone().filter(|member| !member.is_removed()).count();
        let uniform: Vec<f64> =
            members.map(|member| if member.is_removed() { 0.0 } else { 1.0 / enrolled as f64 }).collect();
        let closing = Closing {
            harvest,
            phase: Announced::Exploring,
            next,
            temperature: shared.temperature(),
            probabilities: &uniform,
            measured,
            unmeasured,
            verdict,
        };
        let limit = shared.rules.exploring.rounds_max;
        match shared.close(closing, now, out) {
            None => Phase::Finished(Finished),
            Some(until) if stop || (limit > 0 && self.rounds >= limit) => self.settle(shared, until),
            Some(until) => {
                self.stage = Stage::Resting { until };
                Phase::Exploring(self)
            }
        }
    }

    /// What the stop rule says, and of whose contributions: those of the watched, with others in the place of whoever was
    /// shut out or, where that is wanted, tells nothing.
    fn judge(&self, shared: &Shared) -> (Judgement, Vec<usize>) {
        let members = shared.roster.members();
        let removed = |column: usize| members[column].is_removed();
        let mut rows = Cow::Borrowed(self.history.rows());
        if members.iter().any(Member::is_removed) {
            // Whoever is shut out is nothing to wait for.
            for row in rows.to_mut() {
                row.iter_mut().enumerate().for_each(|(column, value)| *value *= f64::from(!removed(column)));
            }
        }
        let others = (0..members.len()).filter(|column| !self.watched.contains(column));
        let candidates = self.watched.iter().copied().chain(others).filter(|column| !removed(*column));
        let rule = shared.rules.exploring.stop_rule();
        let most = self.watched.len();
        let mut verdict = if shared.rules.exploring.skip_constant {
            rule.judge_independent(&rows, &candidates.collect::<Vec<_>>(), most, shared.temperature())
        } else {
            let watched: Vec<usize> = candidates.take(most).collect();
            rule.judge(&rows, &watched, shared.temperature())
        };
        let tested = std::mem::take(&mut verdict.tested);
        let mut judgement = Judgement::from(verdict);
        let skipped = self.watched.iter().filter(|column| !tested.contains(column));
        let skipped: Vec<&str> = skipped.map(|column| members[*column].id().as_str()).collect();
        if !skipped.is_empty() {
            judgement.reason += &format!("; not tested: {}", skipped.join(", "));
        }
        (judgement, tested)
    }

    /// The standings are known: from now on they decide who is drawn.
    fn settle(self, shared: &mut Shared, until: Tick) -> Phase {
        let (_, tested) = self.judge(shared);
        let drift = DriftWatch::new(self.history, tested);
        Phase::Exploiting(Exploiting::new(shared, until, drift))
    }
}

pub(super) fn fail(cause: FailureCause, out: &mut Outbox) -> Phase {
    out.persist = true;
    out.manifest = true;
    Phase::Failed(Failed { cause })
}
