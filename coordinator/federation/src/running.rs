//! The policy `continuous`: everybody is measured in every round, and some are drawn by what is known so far.

use evenhand_fairness::reference::{ReferenceAnswer, ReferenceMeasurement};
use evenhand_fairness::{
    Sampler, inclusion_probabilities, sampling_probabilities, shrunk_standings, temperature_for_worst_wait,
};
use evenhand_protocol::message::Declined;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::attempt::BeforeDraw;
use crate::collected::CollectedRound;
use crate::config::Rules;
use crate::draw::Draw;
use crate::evaluation::CreditedContributions;
use crate::guard::ModelGuard;
use crate::index::NodeIndex;
use crate::input::Tick;
use crate::measuring::MeasureResponse;
use crate::pace::{RoundPace, is_starved};
use crate::phase::Assessment;
use crate::roster::Roster;
use crate::round::RoundStage;
use crate::statement::Statements;
use crate::stop_test::StopTest;
use crate::twin_debt::TwinDebt;

/// Rounds of contributions by which the stop rule reports whether standings are settled.
const TESTED_ROUNDS_MAX: usize = 512;

/// The phase of the policy `continuous`: it has no other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ContinuousPhase {
    pub(crate) stage: RoundStage,
    /// β of the open round, or of the last one.
    temperature: f64,
    pub(crate) sampler: Sampler,
    /// By index: ϱ of the open round, or of the last one.
    pub(crate) probabilities: Vec<f64>,
    pub(crate) reference: ReferenceMeasurement,
    /// Seed of the reference weights, and rounds since it was drawn.
    seed: u64,
    seed_rounds: u32,
    pub(crate) test: StopTest,
    pub(crate) guard: ModelGuard,
    pub(crate) pace: RoundPace,
    pub(crate) statements: Statements,
    twin_debt: TwinDebt,
}

impl ContinuousPhase {
    pub(crate) fn new(rules: &Rules, until: Tick) -> Self {
        Self {
            stage: RoundStage::Resting { until },
            temperature: 1.0,
            sampler: Sampler::new(rules.exploiting.sampler),
            probabilities: Vec::new(),
            reference: ReferenceMeasurement::new(rules.continuous.memory_rounds.into()),
            seed: 0,
            seed_rounds: 0,
            test: StopTest::default(),
            guard: ModelGuard::default(),
            pace: RoundPace::default(),
            statements: Statements::default(),
            twin_debt: TwinDebt::default(),
        }
    }

    /// A copy whose stage is to be replaced: the answers of an open round are not copied.
    pub(crate) fn clone_without_round(&self) -> Self {
        Self {
            stage: RoundStage::Resting { until: Tick::default() },
            temperature: self.temperature,
            sampler: self.sampler.clone(),
            probabilities: self.probabilities.clone(),
            reference: self.reference.clone(),
            seed: self.seed,
            seed_rounds: self.seed_rounds,
            test: self.test.clone(),
            guard: self.guard.clone(),
            pace: self.pace.clone(),
            statements: self.statements.clone(),
            twin_debt: self.twin_debt.clone(),
        }
    }

    /// Draws k nodes by their standing, and asks everybody present for a reference gradient.
    pub(crate) fn draw(
        &mut self,
        round: u32,
        roster: &mut Roster,
        rules: &Rules,
        rng: &mut ChaCha8Rng,
    ) -> Draw {
        let due = self.seed_rounds.is_multiple_of(rules.continuous.reference_rounds);
        let seed = if due { rng.random() } else { self.seed };
        self.set_odds(roster, rules);
        let k = rules.exploiting.k as usize;
        let draw = Draw::measured(round, roster, &self.probabilities, k, &mut self.sampler, seed, rng);
        self.test.choose(draw.asked(), rules, rng);
        draw
    }

    /// The state before the next draw.
    pub(crate) fn before_draw(&self, rng: &ChaCha8Rng, roster: &Roster) -> BeforeDraw {
        BeforeDraw::new(rng, &self.sampler, &self.test.tested, roster)
    }

    /// Undoes a draw.
    pub(crate) fn return_to(&mut self, sampler: Sampler, tested: Vec<NodeIndex>) {
        self.sampler = sampler;
        self.test.tested = tested;
    }

    /// Takes over the reference of a round that counts.
    fn use_reference(&mut self, seed: u64) {
        if self.seed_rounds == 0 || seed != self.seed {
            self.reference.change_reference();
            (self.seed, self.seed_rounds) = (seed, 0);
        }
        self.seed_rounds += 1;
    }

    /// ϱ of everybody who can be drawn: by standings shrunk by their errors, at the temperature that keeps the promised wait.
    /// Twins share the odds of one.
    fn set_odds(&mut self, roster: &Roster, rules: &Rules) {
        let members = roster.members();
        let can_be_drawn = |node: &usize| {
            members.get(*node).is_some_and(|member| !member.is_removed() && !member.is_newcomer())
        };
        let groups = self.reference.twins().groups(members.len()).into_iter();
        let groups = groups.map(|group| group.into_iter().filter(can_be_drawn).collect::<Vec<usize>>());
        let groups: Vec<Vec<usize>> = groups.filter(|group| !group.is_empty()).collect();
        self.probabilities = vec![0.0; members.len()];
        if groups.is_empty() {
            return;
        }
        let best = |group: &Vec<usize>| {
            let known = group.iter().map(|node| self.reference.standing(*node));
            known.max_by(|a, b| a.value.total_cmp(&b.value)).unwrap_or_default()
        };
        let (standings, errors): (Vec<f64>, Vec<f64>) =
            groups.iter().map(best).map(|standing| (standing.value, standing.standard_error)).unzip();
        let shrunk = shrunk_standings(&standings, &errors);
        let k = rules.exploiting.k;
        let wait = rules.continuous.worst_wait(groups.len(), k);
        // Out of reach are only wishes that the rules refuse, and standings that are not finite.
        self.temperature = temperature_for_worst_wait(&shrunk, k as usize, wait).unwrap_or(f64::MAX);
        for (group, probability) in groups.iter().zip(sampling_probabilities(&shrunk, self.temperature)) {
            for node in group {
                self.probabilities[*node] = probability / group.len() as f64;
            }
        }
    }

    /// Credits what reference gradients have shown, and reports whether standings are settled.
    pub(crate) fn assess(
        &mut self,
        round: &mut CollectedRound,
        roster: &mut Roster,
        rules: &Rules,
    ) -> Assessment {
        if let Some(measure) = round.draw.measure() {
            self.use_reference(measure.seed);
        }
        // A substitute has had one more model than its odds; all share what it owes, so that credits stay in balance.
        let drawable: Vec<bool> = self.probabilities.iter().map(|probability| *probability > 0.0).collect();
        for node in round.draw.substitutes() {
            self.sampler.charge(node.get(), 1.0, &drawable);
        }
        let unmeasured = self.measure(round, roster);
        let groups = self.reference.twins().groups(roster.members().len());
        let inclusion = inclusion_probabilities(&self.probabilities, rules.exploiting.k as usize);
        for (node, owed) in self.twin_debt.settle(&groups, &inclusion) {
            self.sampler.charge(node, owed, &drawable);
        }
        let credited = match &unmeasured {
            Ok(credited) => credited.clone(),
            Err(_) => CreditedContributions::default(),
        };
        let mut verdict = None;
        if !credited.is_empty() {
            self.test.history.push(round.draw.round(), credited.row(roster.members().len()));
            self.test.history.keep_last(TESTED_ROUNDS_MAX);
            verdict = Some(self.test.judge(roster, rules, self.temperature));
        }
        Assessment {
            credited,
            untested: verdict.as_ref().map_or(Vec::new(), |verdict| self.test.left_out(verdict)),
            verdict,
            temperature: self.temperature,
            probabilities: self.probabilities.clone(),
            unmeasured: unmeasured.err(),
        }
    }

    fn measure(
        &mut self,
        round: &mut CollectedRound,
        roster: &mut Roster,
    ) -> Result<CreditedContributions, String> {
        round.withhold();
        let mut nodes: Vec<NodeIndex> = round.measured_nodes().to_vec();
        let (without_data, answered) = round.answers_without_data();
        if is_starved(without_data, answered) {
            // The round came too early: to have no new data yet is no fault.
            let no_data = MeasureResponse::Declined(Declined::NoData);
            nodes.retain(|node| round.measure_response(*node) != no_data);
        }
        let answers: Vec<ReferenceAnswer<'_>> = nodes
            .iter()
            .map(|node| ReferenceAnswer { node: node.get(), gradient: round.gradient(*node) })
            .collect();
        let found = self.reference.measure(&answers).map_err(|error| error.to_string())?;
        for node in &found.repeated {
            round.set_measure_response(NodeIndex(*node), MeasureResponse::Repeated);
        }
        for node in &nodes {
            let known = self.reference.standing(node.get());
            let member = roster.member_mut(*node);
            member.standing.set(known.value, known.standard_error, known.rounds);
            if matches!(round.measure_response(*node), MeasureResponse::Measured { .. }) {
                member.answers_counted = member.answers_counted.saturating_add(1);
            }
        }
        Ok(CreditedContributions::exact(nodes.into_iter().zip(found.contributions)))
    }

    /// By index: true for a node whose answers are those of another one too.
    pub(crate) fn has_twin(&self, members: usize) -> Vec<bool> {
        let mut has_twin = vec![false; members];
        for (one, other) in self.reference.twins().pairs().filter(|(_, other)| *other < members) {
            (has_twin[one], has_twin[other]) = (true, true);
        }
        has_twin
    }

    /// True if the parts can belong to so many members and a model of so many parameters.
    pub(crate) fn is_sound(&self, members: usize, sketch: usize) -> bool {
        let by_member = self.probabilities.len() <= members
            && self.statements.is_sound(members)
            && self.twin_debt.is_sound(members);
        by_member && self.reference.fits(sketch, members)
    }
}
