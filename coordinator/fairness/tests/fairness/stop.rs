//! The stop rules: their verdicts and their error rates.

use evenhand_fairness::{StopReason, StopRule, StopVerdict, hotelling, judge_drift};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

const PAPER: StopRule = StopRule::Paper { window: 15, alpha: 0.7 };
const CALIBRATED: StopRule = StopRule::Calibrated { window: 15, level: LEVEL, precision: PRECISION };
const LEVEL: f64 = 0.05;
const PRECISION: f64 = 0.5;
const TEMPERATURE: f64 = 1.0 / 150.0;
const NODES: usize = 10;
const SPREAD: f64 = 0.01;

/// The behaviour of contributions.
#[derive(Clone, Copy)]
struct Nature {
    /// By how many standard deviations a round the means move, up and down in turn.
    drift: f64,
    /// The number of nodes whose means move.
    drifting: usize,
    /// The share of a round's deviation that stays for the next.
    memory: f64,
}

const SETTLED: Nature = Nature { drift: 0.0, drifting: 0, memory: 0.0 };

/// Contributions of ten nodes, round by round.
struct Rounds {
    nature: Nature,
    rng: ChaCha8Rng,
    deviations: Vec<f64>,
    round: usize,
}

impl Rounds {
    fn new(seed: u64, nature: Nature) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let deviations = (0..NODES).map(|_| StandardNormal.sample(&mut rng)).collect();
        Self { nature, rng, deviations, round: 0 }
    }

    /// The true mean contribution of a node in this round.
    fn mean(&self, node: usize) -> f64 {
        let moved =
            if node < self.nature.drifting { SPREAD * self.nature.drift * self.round as f64 } else { 0.0 };
        0.03 + 0.001 * node as f64 + if node.is_multiple_of(2) { moved } else { -moved }
    }

    fn next(&mut self) -> Vec<f64> {
        self.round += 1;
        let memory = self.nature.memory;
        for deviation in &mut self.deviations {
            let shock: f64 = StandardNormal.sample(&mut self.rng);
            *deviation = memory * *deviation + (1.0 - memory * memory).sqrt() * shock;
        }
        (0..NODES).map(|node| self.mean(node) + SPREAD * self.deviations[node]).collect()
    }

    fn take(mut self, rounds: usize) -> Vec<Vec<f64>> {
        (0..rounds).map(|_| self.next()).collect()
    }

    /// The distance of the worst standing from its node's mean contribution now.
    fn off(&self, history: &[Vec<f64>]) -> f64 {
        let standing = |node: usize| history.iter().map(|row| row[node]).sum::<f64>() / history.len() as f64;
        (0..NODES).map(|node| (standing(node) - self.mean(node)).abs()).fold(0.0, f64::max)
    }
}

/// The round in which a rule stops, judging after every round as the federation does, and whether it was wrong to:
/// some standing was off by more than `PRECISION`·β then.
fn stopped(rule: StopRule, mut rounds: Rounds, horizon: usize) -> Option<(usize, bool)> {
    let tested: Vec<usize> = (0..NODES).collect();
    let mut history: Vec<Vec<f64>> = Vec::new();
    while history.len() < horizon {
        history.push(rounds.next());
        if rule.judge(&history, &tested, TEMPERATURE).stop {
            return Some((history.len(), rounds.off(&history) > PRECISION * TEMPERATURE));
        }
    }
    None
}

const RUNS: u64 = 100;
const HORIZON: usize = 250;

/// The share of runs that stop, and that stop wrongly; prints a line of the table of docs/fairness.md.
fn rates(name: &str, rule: StopRule, nature: Nature) -> (f64, f64) {
    let run = |seed| stopped(rule, Rounds::new(seed, nature), HORIZON);
    let stops: Vec<(usize, bool)> = (0..RUNS).into_par_iter().filter_map(run).collect();
    let share = |count: usize| count as f64 / RUNS as f64;
    let wrong = share(stops.iter().filter(|stop| stop.1).count());
    let mut times: Vec<usize> = stops.iter().map(|stop| stop.0).collect();
    times.resize(RUNS as usize, usize::MAX);
    times.sort_unstable();
    let median = Some(times[RUNS as usize / 2]).filter(|time| *time < usize::MAX);
    let median = median.map_or("never".into(), |median| median.to_string());
    let rule = if rule == PAPER { "paper" } else { "calibrated" };
    println!("| {name} | {rule} | {:.3} | {median} | {wrong:.3} |", share(stops.len()));
    (share(stops.len()), wrong)
}

#[test]
fn false_stop_rates_side_by_side() {
    println!("| contributions | rule | stops within {HORIZON} rounds | median round | stops wrongly |");
    let (stops, wrong) = rates("settled", PAPER, SETTLED);
    assert!(stops == 1.0 && wrong > 0.2, "the paper's rule stops by itself, too early: {wrong}");
    let (stops, wrong) = rates("settled", CALIBRATED, SETTLED);
    assert!(stops > 0.95 && wrong <= LEVEL, "the calibrated rule stops {stops}, wrongly {wrong}");

    for drift in [0.0025, 0.005, 0.01, 0.02, 0.05] {
        let name = format!("constant drift, {drift} sd a round");
        let nature = Nature { drift, drifting: NODES, ..SETTLED };
        let (stops, wrong) = rates(&name, PAPER, nature);
        assert!(stops > 0.95 && wrong > 0.4, "the paper's rule calls drift settled: {wrong}");
        let (_, wrong) = rates(&name, CALIBRATED, nature);
        assert!(wrong <= LEVEL, "drift {drift}: {wrong}");
    }

    // Beyond what the rules suppose or promise, for the record.
    for drift in [0.005, 0.01] {
        let nature = Nature { drift, drifting: 1, ..SETTLED };
        let name = format!("one node of {NODES} drifts, {drift} sd a round");
        rates(&name, PAPER, nature);
        rates(&name, CALIBRATED, nature);
    }
    let nature = Nature { memory: 0.5, ..SETTLED };
    rates("settled, autocorrelation 0.5", PAPER, nature);
    rates("settled, autocorrelation 0.5", CALIBRATED, nature);
}

/// Both drift tests are exact for normal rows: on settled contributions they reject as often as they say.
#[test]
fn the_drift_tests_reject_at_their_level() {
    let trials = 4000;
    for (rounds, window) in [(20, 15), (40, 15), (60, 5)] {
        let rejected = |test: fn(&[Vec<f64>], usize) -> f64| {
            let rejects = |seed: &u64| test(&Rounds::new(*seed, SETTLED).take(rounds), window) < LEVEL;
            (0..trials).into_par_iter().filter(rejects).count() as f64 / trials as f64
        };
        let window_test = rejected(|rows, window| {
            let (before, last) = rows.split_at(rows.len() - window);
            hotelling::two_sample(before, last, NODES).unwrap().p_value
        });
        let trend_test = rejected(|rows, _| hotelling::trend(rows, NODES).unwrap().p_value);
        let deviation = (LEVEL * (1.0 - LEVEL) / trials as f64).sqrt();
        for rate in [window_test, trend_test] {
            assert!((rate - LEVEL).abs() < 4.0 * deviation, "{rounds} rounds: {rate}");
        }
    }
}

/// The paper's p goes to 1 by itself: P(p ≥ 0.7) on settled contributions.
#[test]
fn the_paper_p_value_grows_with_the_rounds_alone() {
    let tested: Vec<usize> = (0..NODES).collect();
    let stops =
        |seed: u64, rounds| PAPER.judge(&Rounds::new(seed, SETTLED).take(rounds), &tested, TEMPERATURE).stop;
    for (rounds, wanted) in [(20, 0.03), (30, 0.59), (40, 0.92), (60, 1.0)] {
        let share = (0..500).into_par_iter().filter(|seed| stops(*seed, rounds)).count() as f64 / 500.0;
        assert!((share - wanted).abs() < 0.07, "{rounds} rounds: {share}");
    }
}

/// The probability that any standing leaves its interval in any round stays below the level.
#[test]
fn confidence_intervals_hold_in_all_rounds_at_once() {
    let ever_missed = |seed: &u64| {
        let mut rounds = Rounds::new(*seed, SETTLED);
        let mut history: Vec<Vec<f64>> = Vec::new();
        (0..200).any(|_| {
            history.push(rounds.next());
            // One column at a time, at its share of the level: the interval of that very node.
            (0..NODES).any(|node| {
                let column: Vec<Vec<f64>> = history.iter().map(|row| vec![row[node]]).collect();
                let rule =
                    StopRule::Calibrated { window: 15, level: LEVEL / NODES as f64, precision: PRECISION };
                let half_width = rule.judge(&column, &[0], TEMPERATURE).half_width;
                let mean = column.iter().map(|row| row[0]).sum::<f64>() / column.len() as f64;
                half_width.is_some_and(|half_width| (mean - rounds.mean(node)).abs() > half_width)
            })
        })
    };
    let missed = (0..200).into_par_iter().filter(ever_missed).count() as f64 / 200.0;
    assert!(missed <= LEVEL, "{missed}");
}

fn rows(rounds: usize) -> Vec<Vec<f64>> {
    Rounds::new(2, SETTLED).take(rounds)
}

fn reasons(history: &[Vec<f64>], tested: &[usize]) -> [StopVerdict; 2] {
    [PAPER, CALIBRATED].map(|rule| {
        let verdict = rule.judge(history, tested, TEMPERATURE);
        assert!(!verdict.stop);
        assert!(verdict.reason.to_string().starts_with("not yet, because "), "{}", verdict.reason);
        verdict
    })
}

#[test]
fn too_few_rounds_are_not_yet_enough() {
    for rounds in 0..=15 {
        for verdict in reasons(&rows(rounds), &[0, 1, 2]) {
            assert!(matches!(verdict.reason, StopReason::TooFewRounds { .. }));
            assert_eq!(verdict.p_value, None);
        }
    }
    // As many rounds as tested nodes leave the covariance singular.
    let wide: Vec<Vec<f64>> = rows(20).iter().map(|row| row.repeat(2)).collect();
    let all: Vec<usize> = (0..20).collect();
    let [paper, calibrated] = reasons(&wide, &all);
    assert_eq!(paper.reason, StopReason::TooFewRounds { rounds: 20, needed: 21 });
    assert_eq!(calibrated.reason, StopReason::TooFewRounds { rounds: 20, needed: 22 });
}

#[test]
fn a_constant_node_is_named() {
    let mut history = rows(40);
    history.iter_mut().for_each(|row| row[4] = 0.25);
    for verdict in reasons(&history, &[1, 4, 7]) {
        assert_eq!(verdict.reason, StopReason::Constant { node: 4 });
    }
}

#[test]
fn nodes_that_determine_each_other_are_not_judged() {
    let mut history = rows(40);
    history.iter_mut().for_each(|row| row[4] = row[1] + 2.0 * row[7]);
    for verdict in reasons(&history, &[1, 4, 7]) {
        assert_eq!(verdict.reason, StopReason::Singular);
    }
}

#[test]
fn an_absent_node_is_named_with_its_round() {
    let mut history = rows(40);
    history[3].truncate(7);
    for verdict in reasons(&history, &[1, 8]) {
        assert_eq!(verdict.reason, StopReason::Absent { node: 8, round: 3 });
        assert_eq!(verdict.reason.to_string(), "not yet, because node 8 has no contribution in round 4");
    }
    let mut history = rows(40);
    history[5][1] = f64::NAN;
    for verdict in reasons(&history, &[1, 8]) {
        assert_eq!(verdict.reason, StopReason::Absent { node: 1, round: 5 });
    }
}

#[test]
fn no_tested_node_is_not_yet() {
    for verdict in reasons(&rows(40), &[]) {
        assert_eq!(verdict.reason, StopReason::NoTestedNodes);
    }
}

#[test]
fn precision_is_asked_of_every_node_and_drift_of_the_tested() {
    let mut history = rows(300);
    let tested = [0, 1, 2];
    let satisfied = CALIBRATED.judge(&history, &tested, TEMPERATURE);
    assert!(satisfied.stop, "{}", satisfied.reason);
    // Node 9, which is not tested, is ten times as noisy.
    history.iter_mut().for_each(|row| row[9] *= 10.0);
    let StopVerdict { stop, reason, .. } = CALIBRATED.judge(&history, &tested, TEMPERATURE);
    assert!(!stop && matches!(reason, StopReason::Imprecise { node: 9, .. }), "{reason}");
    // A step of node 1 in the last window is drift.
    let mut history = rows(300);
    history[285..].iter_mut().for_each(|row| row[1] += 2.0 * SPREAD);
    let StopVerdict { stop, reason, .. } = CALIBRATED.judge(&history, &tested, TEMPERATURE);
    assert!(!stop && matches!(reason, StopReason::Moving { .. }), "{reason}");
    // So slow a rise that the last window hardly differs is a trend.
    let mut history = rows(300);
    for (round, row) in history.iter_mut().enumerate() {
        row.iter_mut().for_each(|x| *x += 0.0025 * SPREAD * round as f64);
    }
    let StopVerdict { stop, reason, .. } = CALIBRATED.judge(&history, &tested, TEMPERATURE);
    assert!(!stop && matches!(reason, StopReason::Trending { .. }), "{reason}");
}

/// Two that vary by themselves, one that never varies, and two that follow from the others.
#[test]
fn only_independent_columns_are_tested() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let rows: Vec<Vec<f64>> = (0..40)
        .map(|_| {
            let (x, y) = (rng.random_range(0.0..1.0), rng.random_range(0.0..1e-3));
            vec![x, 0.1, y, 1.0 - x - y, 0.3 * x + 2.0 * y]
        })
        .collect();
    assert_eq!(hotelling::independent_columns(&rows, &[0, 1, 2, 3, 4], 5), [0, 2]);
    assert_eq!(hotelling::independent_columns(&rows, &[3, 1, 4, 0], 5), [3, 4]);
    assert_eq!(hotelling::independent_columns(&rows, &[1, 2, 0], 1), [2]);
    let rule = StopRule::Paper { window: 10, alpha: 0.7 };
    assert_eq!(rule.judge(&rows, &[0, 2, 3], 1.0).reason, StopReason::Singular);
    let verdict = rule.judge_independent(&rows, &[0, 2, 3], 3, 1.0);
    assert_eq!(verdict, rule.judge(&rows, &[0, 2], 1.0));
    assert_eq!(verdict.tested, [0, 2]);
    // Which of them follows from the others is a matter of order, and makes no difference.
    let (one, other) = (rule.judge(&rows, &[0, 2], 1.0), rule.judge(&rows, &[0, 3], 1.0));
    assert!((one.p_value.unwrap() - other.p_value.unwrap()).abs() < 1e-6, "{one:?} {other:?}");
    let verdict = rule.judge_independent(&rows, &[1], 1, 1.0);
    assert!(verdict.stop && verdict.reason == StopReason::NothingVaries);
    let verdict = rule.judge_independent(&rows[..10], &[1, 0], 1, 1.0);
    assert_eq!((verdict.stop, verdict.tested), (false, vec![1]), "too few rounds to call it constant");
}

#[test]
fn a_drift_test_has_three_answers() {
    let reference = rows(40);
    let tested = [0, 3];
    let holds = judge_drift(&reference, &Rounds::new(5, SETTLED).take(20), &tested, 1e-3);
    assert!(matches!(holds.reason, StopReason::Holds { .. }) && holds.tested == tested, "{holds}");
    assert!(holds.to_string().starts_with("contributions still hold: p = 0."), "{holds}");
    let mut recent = Rounds::new(5, SETTLED).take(20);
    recent.iter_mut().for_each(|row| row[3] += 4.0 * SPREAD);
    let moved = judge_drift(&reference, &recent, &tested, 1e-3);
    assert!(matches!(moved.reason, StopReason::Moved { .. }) && !moved.stop, "{moved}");
    let p = moved.p_value.unwrap();
    assert_eq!(moved.to_string(), format!("contributions have moved: p = {p:.2e}; they are measured again"));
    recent.iter_mut().for_each(|row| row.clear());
    assert!(matches!(judge_drift(&[], &recent, &tested, 1e-3).reason, StopReason::Untestable));
}

#[test]
fn a_verdict_is_saved_and_restored_as_it_is() {
    let history = rows(40);
    let judged = [PAPER, CALIBRATED].map(|rule| rule.judge(&history, &[0, 1, 2], TEMPERATURE));
    for verdict in judged.into_iter().chain([judge_drift(&[], &[], &[0], 0.1)]) {
        let saved = postcard::to_allocvec(&verdict).unwrap();
        assert_eq!(postcard::from_bytes::<StopVerdict>(&saved).unwrap(), verdict);
    }
}
