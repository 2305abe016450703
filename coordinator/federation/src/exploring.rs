//! Contribution evaluation: everybody takes part until the standings are settled.

use evenhand_fairness::StopVerdict;
use evenhand_protocol::message::Why;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::collected::CollectedRound;
use crate::config::Rules;
use crate::draw::Draw;
use crate::drift::DriftTest;
use crate::evaluation::{CreditedContributions, Evaluation};
use crate::exploiting::Exploiting;
use crate::index::NodeIndex;
use crate::input::Tick;
use crate::member::Member;
use crate::phase::Assessment;
use crate::roster::Roster;
use crate::round::RoundStage;
use crate::stop_test::StopTest;

/// The first phase, and each later one in which contributions are measured again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Exploring {
    pub(crate) stage: RoundStage,
    /// φ of this exploration, and the nodes tested.
    pub(crate) test: StopTest,
    /// Rounds of this exploration, with those in which nothing arrived.
    rounds: u32,
}

impl Exploring {
    pub(crate) fn new(until: Tick) -> Self {
        Self { stage: RoundStage::Resting { until }, test: StopTest::default(), rounds: 0 }
    }

    /// Measures everybody again. Standings hold until the first new measurement.
    pub(crate) fn again(roster: &mut Roster, until: Tick) -> Self {
        for member in roster.members_mut() {
            member.measured = false;
            member.standing = member.standing.renewed();
        }
        Self::new(until)
    }

    /// A copy whose stage is to be replaced: the updates of an open round are not copied.
    pub(crate) fn clone_without_round(&self) -> Self {
        Self {
            stage: RoundStage::Resting { until: Tick::default() },
            test: self.test.clone(),
            rounds: self.rounds,
        }
    }

    /// Asks every present node.
    pub(crate) fn draw(
        &mut self,
        round: u32,
        roster: &mut Roster,
        rules: &Rules,
        rng: &mut ChaCha8Rng,
    ) -> Draw {
        let draw = Draw::everyone(round, Why::Exploring, roster);
        for asked in draw.asked() {
            roster.member_mut(asked.node).measured = true;
        }
        self.test.choose(draw.asked(), rules, rng);
        self.rounds += 1;
        draw
    }

    /// Credits the contributions, and judges whether the standings are settled.
    pub(crate) fn assess(
        &mut self,
        round: &CollectedRound,
        evaluation: &Evaluation,
        roster: &mut Roster,
        rules: &Rules,
    ) -> Assessment {
        let mut credited = CreditedContributions::default();
        let mut verdict = None;
        if let Some(contributions) = &evaluation.contributions {
            // A node that was to take part and did not has φ = 0.
            let measured = roster.indices_where(|member| member.measured && !member.is_removed());
            credited = CreditedContributions::zero(measured);
            credited.credit(round, contributions);
            for (node, value) in credited.iter() {
                roster.member_mut(node).standing.add(value);
            }
            self.test.history.push(round.draw.round(), credited.row(roster.members().len()));
            verdict = Some(self.test.judge(roster, rules, roster.temperature(rules)));
        }
        let enrolled = roster.enrolled().count();
        let uniform = |member: &Member| if member.is_removed() { 0.0 } else { 1.0 / enrolled as f64 };
        Assessment {
            credited,
            untested: verdict.as_ref().map_or(Vec::new(), |verdict| self.test.left_out(verdict)),
            verdict,
            temperature: roster.temperature(rules),
            probabilities: roster.members().iter().map(uniform).collect(),
            unmeasured: evaluation.unmeasured.clone(),
        }
    }

    /// True if exploring is over: the stop rule says so, or the limit of rounds is reached.
    pub(crate) fn is_over(&self, verdict: Option<&StopVerdict>, rules: &Rules) -> bool {
        let limit = rules.exploring.rounds_max;
        verdict.is_some_and(|verdict| verdict.stop) || (limit > 0 && self.rounds >= limit)
    }

    /// The standings are known: from now on they decide the draws. `verdict` is the last round's, if it had one.
    pub(crate) fn settle(
        self,
        verdict: Option<StopVerdict>,
        roster: &Roster,
        rules: &Rules,
        until: Tick,
    ) -> Exploiting {
        let verdict = verdict.unwrap_or_else(|| self.test.judge(roster, rules, roster.temperature(rules)));
        let tested = verdict.tested.into_iter().map(NodeIndex).collect();
        Exploiting::new(roster, rules, until, DriftTest::new(self.test.history, tested))
    }
}
