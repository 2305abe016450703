//! Replay of a recorded round: the same federation, the same messages, the same figures.

use std::fmt::Debug;

use evenhand_protocol::message::{Measured, Phase, Update, Why};

use crate::Federation;
use crate::admission::UpdateLimits;
use crate::closed::{ClosedRound, NodeResponse, ReceivedRound};
use crate::effect::{Effect, EffectBuffer};
use crate::index::NodeIndex;
use crate::input::{Command, Input, Tick};
use crate::measuring::{AcceptedMeasurement, MeasureResponse};
use crate::member::{NodeSession, Pending};
use crate::phase::FederationPhase;
use crate::round::Absence;

/// The first figure in which a record differs from what follows from the rounds before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("round {round}: {what} was {recorded} and should be {computed}")]
pub struct ReplayDifference {
    /// The round.
    pub round: u32,
    /// The figure.
    pub what: String,
    /// Its recorded value.
    pub recorded: String,
    /// Its recomputed value.
    pub computed: String,
}

impl Federation {
    /// Replays a recorded round with the messages that counted, as they were received, and compares everything in the record
    /// that follows from the rounds before with what is computed: the draw, φ, ψ, the verdict, θ.
    ///
    /// Begin with the founding state; the federation is paused between rounds. Who was online, who
    /// answered and what the operator commanded are taken from the record. After a difference the federation is of no use.
    pub fn replay(
        &mut self,
        recorded: &ClosedRound,
        received: ReceivedRound,
    ) -> Result<(), ReplayDifference> {
        let clock = ReplayClock(recorded.round);
        self.rules = self.rules.without_end();
        let _effects = self.step(clock.tick(0), Input::Command(Command::Pause));
        self.set_presence(recorded);
        if let FederationPhase::Enrolling(enrolling) = &mut self.phase {
            enrolling.begin = true;
        }
        if recorded.phase == Phase::Exploring {
            let _effects = self.step(clock.tick(1), Input::Command(Command::Explore));
        }
        self.enrol_recorded(recorded);
        let _effects = self.step(clock.tick(2), Input::Command(Command::Resume));
        let _effects = self.step(clock.tick(3), Input::Command(Command::Pause));
        self.compare_draw(recorded)?;
        self.substitute_as_recorded(recorded);
        self.answer_as_recorded(recorded, received.updates)?;
        self.measure_as_recorded(recorded, received.measurements)?;
        let computed = self.close_replayed(recorded, clock.tick(ReplayClock::CLOSING))?;
        compare(recorded, &computed)
    }

    /// Members as online, offline or removed as they were when the round was opened.
    fn set_presence(&mut self, recorded: &ClosedRound) {
        for (member, row) in self.roster.members_mut().zip(&recorded.nodes) {
            member.session.online = row.why != Why::Absent;
            member.removed = row.removed.filter(|removed| *removed < recorded.round);
        }
    }

    /// Enrols the nodes that joined for this round, in the order of the record.
    fn enrol_recorded(&mut self, recorded: &ClosedRound) {
        let standing = self.entry_standing();
        for row in recorded.nodes.iter().skip(self.members().len()) {
            let session = NodeSession { number: 0, online: true };
            self.roster.enrol(row.node.clone(), Pending { session, holds: None }, standing);
        }
        self.set_presence(recorded);
    }

    /// Checks that the same nodes are enrolled, and the same were drawn.
    fn compare_draw(&self, recorded: &ClosedRound) -> Result<(), ReplayDifference> {
        let differs = |what, recorded_value: String, computed: String| {
            Err(ReplayDifference { round: recorded.round, what, recorded: recorded_value, computed })
        };
        let enrolled: Vec<&str> = self.members().iter().map(|member| member.id().as_str()).collect();
        let listed: Vec<&str> = recorded.nodes.iter().map(|row| row.node.as_str()).collect();
        if enrolled != listed {
            return differs("the list of nodes".into(), format!("{listed:?}"), format!("{enrolled:?}"));
        }
        let Some(round) = self.phase.round().filter(|round| round.draw.round() == recorded.round) else {
            let computed = format!("none; the phase is {}", self.phase().name());
            return differs("the round".into(), recorded.round.to_string(), computed);
        };
        let drawn: Vec<&str> = round.draw.asked().iter().map(|asked| listed[asked.node.get()]).collect();
        let asked: Vec<&str> = recorded.asked().map(|row| row.node.as_str()).collect();
        let (left_out, substitutes) =
            (drawn.iter().any(|node| !asked.contains(node)), asked.len() - drawn.len().min(asked.len()));
        let allowed = match &self.phase {
            FederationPhase::Running(running) => {
                let drawable = recorded.asked().all(|row| {
                    let index = listed.iter().position(|name| *name == row.node.as_str());
                    index.and_then(|index| running.probabilities.get(index)).is_some_and(|p| *p > 0.0)
                });
                if drawable { self.rules.exploiting.k as usize } else { 0 }
            }
            _ => 0,
        };
        match left_out || substitutes > allowed {
            false => Ok(()),
            true => differs("the draw".into(), format!("{asked:?}"), format!("{drawn:?}")),
        }
    }

    /// Draws the substitutes that are recorded beside the draw: which drawn nodes were late, and when, is not.
    fn substitute_as_recorded(&mut self, recorded: &ClosedRound) {
        let Some(round) = self.phase.round_mut() else { return };
        for (index, row) in recorded.nodes.iter().enumerate() {
            if row.was_asked() && round.draw.slot(NodeIndex(index)).is_none() {
                round.substitute(NodeIndex(index), &mut self.roster);
            }
        }
    }

    /// Gives every asked node the response that is recorded.
    fn answer_as_recorded(
        &mut self,
        recorded: &ClosedRound,
        updates: Vec<(NodeIndex, Update)>,
    ) -> Result<(), ReplayDifference> {
        let differs = |what: String, recorded_value: String, computed: String| {
            Err(ReplayDifference { round: recorded.round, what, recorded: recorded_value, computed })
        };
        let limits = UpdateLimits::new(&self.rules, self.model.dimension());
        let Some(round) = self.phase.round_mut() else {
            return differs("the round".into(), "open".into(), "closed".into());
        };
        let mut updates = updates.into_iter().peekable();
        for slot in round.draw.slots() {
            let node = round.draw.node(slot);
            let row = &recorded.nodes[node.get()];
            let update = updates.next_if(|(of, _)| *of == node).map(|(_, update)| update);
            let admitted = update.clone().map(|update| limits.admit(update));
            let absence = match (row.response, admitted) {
                (NodeResponse::Arrived { norm, .. }, Some(Ok(accepted)))
                    if accepted.norm() == norm && update == Some(accepted.to_message(recorded.round)) =>
                {
                    round.arrive(slot, accepted);
                    continue;
                }
                (NodeResponse::Declined(reason), None) => Absence::Declined(reason),
                (NodeResponse::Refused(refusal), None) => Absence::Refused(refusal),
                (NodeResponse::Disconnected, None) => Absence::Disconnected,
                (NodeResponse::Missed, None) => Absence::Missed,
                (response, admitted) => {
                    let stored = match admitted {
                        Some(Ok(_)) => "another update".into(),
                        Some(Err(refusal)) => format!("refused ({refusal:?})"),
                        None => "none".into(),
                    };
                    return differs(format!("the update of {}", row.node), format!("{response:?}"), stored);
                }
            };
            round.give_up(slot, absence);
        }
        match updates.next() {
            None => Ok(()),
            Some((node, _)) => {
                let name = recorded.nodes.get(node.get()).map_or(String::new(), |row| row.node.to_string());
                differs("the update of a node that was not drawn".into(), name, "none".into())
            }
        }
    }

    /// Gives every measured node the response that is recorded.
    fn measure_as_recorded(
        &mut self,
        recorded: &ClosedRound,
        measurements: Vec<(NodeIndex, Measured)>,
    ) -> Result<(), ReplayDifference> {
        let differs = |what: String, recorded_value: String, computed: String| {
            Err(ReplayDifference { round: recorded.round, what, recorded: recorded_value, computed })
        };
        let (parameters, rules) = (self.model.dimension(), &self.rules);
        let Some(round) = self.phase.round_mut() else {
            return differs("the round".into(), "open".into(), "closed".into());
        };
        let nodes = round.draw.measure().map_or(Vec::new(), |measure| measure.nodes.clone());
        let mut measurements = measurements.into_iter().peekable();
        for (place, node) in nodes.into_iter().enumerate() {
            let row = &recorded.nodes[node.get()];
            let measured = measurements.next_if(|(of, _)| *of == node).map(|(_, measured)| measured);
            let admitted = measured.map(|measured| AcceptedMeasurement::admit(&measured, rules, parameters));
            let absence = match (row.measured, admitted) {
                (
                    MeasureResponse::Measured { .. } | MeasureResponse::Repeated | MeasureResponse::Withheld,
                    Some(Ok(accepted)),
                ) => {
                    round.measurements.arrive(place, accepted);
                    continue;
                }
                (MeasureResponse::Declined(reason), None) => Absence::Declined(reason),
                (MeasureResponse::Refused(refusal), None) => Absence::Refused(refusal),
                (MeasureResponse::Disconnected, None) => Absence::Disconnected,
                (MeasureResponse::Missed, None) => Absence::Missed,
                (response, admitted) => {
                    let stored = match admitted {
                        Some(Ok(_)) => "another gradient".into(),
                        Some(Err(refusal)) => format!("refused ({refusal:?})"),
                        None => "none".into(),
                    };
                    let what = format!("the reference gradient of {}", row.node);
                    return differs(what, format!("{response:?}"), stored);
                }
            };
            round.measurements.give_up(place, absence);
        }
        match measurements.next() {
            None => Ok(()),
            Some((node, _)) => {
                let name = recorded.nodes.get(node.get()).map_or(String::new(), |row| row.node.to_string());
                differs("the reference gradient of a node that was not asked".into(), name, "none".into())
            }
        }
    }

    /// Closes the round, with those removed that were when it was closed.
    fn close_replayed(&mut self, recorded: &ClosedRound, now: Tick) -> Result<ClosedRound, ReplayDifference> {
        for (index, row) in recorded.nodes.iter().enumerate() {
            self.roster.member_mut(NodeIndex(index)).removed = row.removed;
        }
        let mut out = EffectBuffer::default();
        self.advance(now, &mut out);
        match self.effects(out).into_iter().next() {
            Some(Effect::Record(evidence)) => Ok(evidence.round),
            _ => Err(ReplayDifference {
                round: recorded.round,
                what: "the round".into(),
                recorded: "closed".into(),
                computed: self.failure().map_or("still open".into(), ToString::to_string),
            }),
        }
    }
}

/// Times that lie beyond every deadline of the round before.
#[derive(Clone, Copy)]
struct ReplayClock(u32);

impl ReplayClock {
    /// A step beyond the deadline of the round itself: nothing further is drawn.
    const CLOSING: u64 = 1 << 39;

    fn tick(self, step: u64) -> Tick {
        Tick((u64::from(self.0) << 40) + step)
    }
}

/// The first difference in what follows from the rounds before, which times and refusals do not.
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
        same(round, of("the response"), a.response, b.response)?;
        same(round, of("the measurement"), a.measured, b.measured)?;
        same(round, of("having a twin"), a.has_twin, b.has_twin)?;
        same(round, of("the contribution"), a.contribution, b.contribution)?;
        same(round, of("the contribution's error"), a.contribution_error, b.contribution_error)?;
        same(round, of("the standing"), a.standing, b.standing)?;
        same(round, of("the standing's error"), a.standing_error, b.standing_error)?;
        same(round, of("the sampling probability"), a.sampling_probability, b.sampling_probability)?;
        same(round, of("the number of draws"), (a.drawn, a.last_drawn), (b.drawn, b.last_drawn))?;
        same(round, of("the staleness"), a.staleness, b.staleness)?;
    }
    same(round, "the loss", recorded.loss, computed.loss)?;
    same(
        round,
        "the reason why contributions were not measured",
        &recorded.unmeasured,
        &computed.unmeasured,
    )?;
    same(round, "the guard's intervention", recorded.intervention, computed.intervention)?;
    same(round, "the stop rule's verdict", &recorded.verdict, &computed.verdict)?;
    same(round, "the list of untested nodes", &recorded.untested, &computed.untested)?;
    same(round, "the model after", recorded.weights_after, computed.weights_after)?;
    same(round, "the models of single nodes after", recorded.node_models_after, computed.node_models_after)
}
