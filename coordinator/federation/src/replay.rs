//! A round played again from its record: the same federation, the same words, the same figures.

use std::fmt::Debug;

use evenhand_protocol::message::{Phase as Announced, Update, Why};

use super::effect::Effect;
use super::input::{Command, Input, Tick};
use super::member::{Candidate, Session};
use super::record::{ClosedRound, NodeResponse};
use super::round::{Absence, Stage};
use super::shared::Outbox;
use super::{Federation, Phase};

/// The first thing in which a record differs from what follows from the rounds before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("round {round}: {what} was {recorded} and should be {computed}")]
pub struct ReplayDifference {
    /// The round.
    pub round: u32,
    /// What differs.
    pub what: String,
    /// What the record says.
    pub recorded: String,
    /// What follows.
    pub computed: String,
}

impl Federation {
    /// Plays a recorded round with the updates that counted, as they were received, and holds everything in the record that
    /// follows from what came before against what is computed: the draw, φ, ψ, the verdict, θ.
    ///
    /// Begin with the founding state; the federation is paused between rounds. Who was there, who
    /// answered and what the operator wanted are taken from the record.
    pub fn replay(
        mut self,
        record: &ClosedRound,
        updates: Vec<(usize, Update)>,
    ) -> Result<Self, ReplayDifference> {
        let clock = Clock(record.round);
        self.shared.rules = self.shared.rules.without_end();
        self = self.step(clock.tick(0), Input::Command(Command::Pause)).0;
        for (column, row) in record.nodes.iter().enumerate() {
            if column < self.members().len() {
                let member = self.shared.roster.member_mut(column);
                member.session.alive = row.why != Why::Absent;
                member.removed = row.removed.filter(|removed| *removed < record.round);
            } else {
                let session = Session { number: 0, alive: true };
                self.shared.roster.wait(row.node.clone(), Candidate { session, holds: None });
            }
        }
        if let Phase::Enrolling(enrolling) = &mut self.phase {
            enrolling.begin = true;
        }
        if record.phase == Announced::Exploring {
            self = self.step(clock.tick(1), Input::Command(Command::Explore)).0;
        }
        self = self.step(clock.tick(2), Input::Command(Command::Resume)).0;
        self = self.step(clock.tick(3), Input::Command(Command::Pause)).0;
        let (federation, computed) = self.answer_as(record, updates, clock.tick(4))?;
        compare(record, &computed)?;
        Ok(federation)
    }

    /// Gives every asked member the fate that is recorded, and closes the round.
    fn answer_as(
        mut self,
        record: &ClosedRound,
        updates: Vec<(usize, Update)>,
        now: Tick,
    ) -> Result<(Self, ClosedRound), ReplayDifference> {
        let differs = |what: &str, recorded: String, computed: String| ReplayDifference {
            round: record.round,
            what: what.into(),
            recorded,
            computed,
        };
        let enrolled: Vec<String> = self.members().iter().map(|member| member.id().to_string()).collect();
        let listed: Vec<String> = record.nodes.iter().map(|row| row.node.to_string()).collect();
        if enrolled != listed {
            return Err(differs("the list of nodes", format!("{listed:?}"), format!("{enrolled:?}")));
        }
        let phase = self.phase.clone();
        let open = self.phase.stage_mut().and_then(Stage::round_mut);
        let Some(round) = open.filter(|round| round.draw.round() == record.round) else {
            return Err(differs("the round", record.round.to_string(), format!("none, in {phase:?}")));
        };
        let shared = &self.shared;
        let name = |column: usize| listed.get(column).cloned().unwrap_or_default();
        let drawn: Vec<String> = round.draw.asked().iter().map(|asked| name(asked.member)).collect();
        let recorded: Vec<String> = record.asked().map(|row| row.node.to_string()).collect();
        if drawn != recorded {
            return Err(differs("the draw", format!("{recorded:?}"), format!("{drawn:?}")));
        }
        let mut updates = updates.into_iter().peekable();
        for place in 0..round.draw.asked().len() {
            let column = round.draw.asked()[place].member;
            let row = &record.nodes[column];
            let update = updates.next_if(|(of, _)| *of == column).map(|(_, update)| update);
            let admitted = update.clone().map(|update| shared.admit(update));
            let absence = match (row.fate, admitted) {
                (NodeResponse::Arrived { norm, .. }, Some(Ok(accepted)))
                    if accepted.norm() == norm && update == Some(accepted.received(record.round)) =>
                {
                    round.arrive(place, accepted);
                    continue;
                }
                (NodeResponse::Declined(reason), None) => Absence::Declined(reason),
                (NodeResponse::Refused(refusal), None) => Absence::Refused(refusal),
                (NodeResponse::Disconnected, None) => Absence::Disconnected,
                (NodeResponse::Missed, None) => Absence::Missed,
                (fate, admitted) => {
                    let kept = match admitted {
                        Some(Ok(_)) => "another update".into(),
                        Some(Err(refusal)) => format!("refused ({refusal:?})"),
                        None => "none".into(),
                    };
                    return Err(differs(&format!("the update of {}", row.node), format!("{fate:?}"), kept));
                }
            };
            round.give_up(place, absence);
        }
        if let Some((column, _)) = updates.next() {
            return Err(differs("the update of a node that was not drawn", name(column), "none".into()));
        }
        for (column, row) in record.nodes.iter().enumerate() {
            self.shared.roster.member_mut(column).removed = row.removed;
        }
        let mut out = Outbox::default();
        self = self.advance(now, &mut out);
        match self.effects(out).into_iter().next() {
            Some(Effect::Record(closed)) => Ok((self, closed.record)),
            _ => {
                let cause = self.failure().map_or("still open".into(), ToString::to_string);
                Err(differs("the round", "closed".into(), cause))
            }
        }
    }
}

/// Times that lie beyond every deadline of the round before.
#[derive(Clone, Copy)]
struct Clock(u32);

impl Clock {
    fn tick(self, step: u64) -> Tick {
        Tick((u64::from(self.0) << 40) + step)
    }
}

/// The first difference in what follows from the rounds before; times and refusals do not.
fn compare(recorded: &ClosedRound, computed: &ClosedRound) -> Result<(), ReplayDifference> {
    fn same<T: PartialEq + Debug>(
        round: u32,
        what: impl Into<String>,
        a: T,
        b: T,
    ) -> Result<(), ReplayDifference> {
        match a == b {
            true => Ok(()),
            false => Err(ReplayDifference {
                round,
                what: what.into(),
                recorded: format!("{a:?}"),
                computed: format!("{b:?}"),
            }),
        }
    }
    let round = recorded.round;
    same(round, "the phase", recorded.phase, computed.phase)?;
    same(round, "the temperature", recorded.temperature, computed.temperature)?;
    same(round, "the model before", recorded.weights_before, computed.weights_before)?;
    for (a, b) in recorded.nodes.iter().zip(&computed.nodes) {
        let of = |what: &str| format!("{what} of {}", a.node);
        same(round, of("the reason for the draw"), a.why, b.why)?;
        same(round, of("the share"), a.fate, b.fate)?;
        same(round, of("the contribution"), a.contribution, b.contribution)?;
        same(round, of("the contribution's error"), a.contribution_error, b.contribution_error)?;
        same(round, of("the standing"), a.standing, b.standing)?;
        same(round, of("the standing's error"), a.standing_error, b.standing_error)?;
        same(round, of("the sampling probability"), a.sampling_probability, b.sampling_probability)?;
        same(round, of("the number of draws"), (a.drawn, a.last_drawn), (b.drawn, b.last_drawn))?;
        same(round, of("the staleness"), a.staleness, b.staleness)?;
    }
    same(round, "the loss", recorded.loss, computed.loss)?;
    same(round, "what kept contributions from being told", &recorded.unmeasured, &computed.unmeasured)?;
    same(round, "the stop rule's verdict", &recorded.verdict, &computed.verdict)?;
    same(round, "the model after", recorded.weights_after, computed.weights_after)?;
    same(round, "the nodes' own models after", recorded.own_after, computed.own_after)
}
