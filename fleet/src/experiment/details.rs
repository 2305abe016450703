//! What the paper plots and tests of a trial, round by round.

use evenhand_fairness::{hotelling, measures};
use serde::{Deserialize, Serialize};

use crate::scenario::{NaiveScores, designated};
use crate::sim::RecordedRun;
use crate::sim::online::OnlineScore;

/// Rounds at the end over which the final score is a mean.
const FINAL_ROUNDS: usize = 10;
/// τ of the p-values with and without sub-sampling in the paper's figures.
const WINDOW_TESTED: usize = 20;
const WINDOW_ALL: usize = 35;
/// Rounds of a window in which normality is tested, and rounds between the beginnings of two.
const NORMALITY_WINDOW: usize = 50;
const NORMALITY_STRIDE: usize = 10;
/// Normality is rejected below this p.
const NORMALITY_LEVEL: f64 = 0.05;
/// Lags of the autocorrelation.
const LAGS: usize = 20;
/// Nodes of which all paths are kept.
const PATHS_MAX: usize = 10;

/// A trial round by round. What is not a number is left out: JSON has none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrialDetails {
    /// By node: its accuracy or MAPE, mean over the last ten rounds.
    pub final_scores: Vec<Option<f64>>,
    /// By exploring round: share of the three tenths of the nodes with the highest ζ among as many of the lowest standing.
    pub recall: Vec<Option<f64>>,
    /// By exploring round: the largest change of a standing.
    pub changes: Vec<Option<f64>>,
    /// By exploring round: the largest distance of a standing from that after the last.
    pub distances: Vec<Option<f64>>,
    /// By exploring round: p of the paper's rule on the tested nodes.
    pub p_tested: Vec<Option<f64>>,
    /// By exploring round: p of the paper's rule on all nodes.
    pub p_all: Vec<Option<f64>>,
    /// Normality of contributions in windows.
    pub normality: Option<WindowedNormality>,
    /// Autocorrelation of the contributions of the node of the lowest standing, by lag; that of lag 0 is 1.
    pub autocorrelation: Vec<f64>,
    /// The band around 0 in which 95 % of those of independent contributions lie.
    pub autocorrelation_bound: Option<f64>,
    /// By round: loss of the node of the highest standing, of that at a quarter from below, and of that of the lowest.
    pub ranked_losses: [Vec<Option<f64>>; 3],
    /// By node and round, where there are few nodes: loss.
    pub losses: Vec<Vec<Option<f64>>>,
    /// By round, where there are few nodes: loss of the latest model.
    pub latest_losses: Vec<Option<f64>>,
    /// By node and round, where there are few nodes: standing.
    pub standings: Vec<Vec<Option<f64>>>,
    /// The node that an experiment is about.
    pub watched: Option<usize>,
    /// Scores without a model.
    pub naive: NaiveScores,
}

/// The test of Henze and Zirkler on all nodes' contributions, in windows of rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WindowedNormality {
    /// Windows.
    pub windows: usize,
    /// The share of windows in which normality is not rejected.
    pub not_rejected: f64,
    /// The mean p.
    pub p_mean: f64,
}

impl TrialDetails {
    /// The details of a run.
    pub fn of(run: &RecordedRun) -> Self {
        let explored: Vec<&Vec<f64>> =
            run.log.rounds.iter().filter(|round| round.exploring).map(|round| &round.standings).collect();
        let rows: Vec<Vec<f64>> = (run.log.rounds.iter().filter(|round| round.exploring))
            .filter_map(|round| round.contributions.clone())
            .collect();
        let nodes = run.nodes.len();
        let is_measured = !rows.is_empty();
        let tested = (run.description.rules.exploring.tested_nodes as usize).min(nodes);
        let columns: Vec<usize> = (0..tested).map(|column| column * nodes / tested).collect();
        let everybody: Vec<usize> = (0..nodes).collect();
        let zetas: Vec<f64> = run.nodes.iter().map(|node| node.zeta).collect();
        let few = nodes <= PATHS_MAX;
        let acf = lowest(run).filter(|_| is_measured).and_then(|node| {
            let values: Vec<f64> = rows.iter().map(|row| row[node]).collect();
            measures::autocorrelation(&values, LAGS.min(values.len().saturating_sub(1)))
        });
        Self {
            final_scores: (0..nodes).map(|node| final_score(run, node)).collect(),
            recall: if is_measured {
                explored.iter().map(|standings| recall(standings, &zetas)).collect()
            } else {
                Vec::new()
            },
            changes: if is_measured { changes(&explored) } else { Vec::new() },
            distances: if is_measured { distances(&explored) } else { Vec::new() },
            p_tested: p_values(&rows, &columns, WINDOW_TESTED),
            p_all: p_values(&rows, &everybody, WINDOW_ALL),
            normality: normality(&rows),
            autocorrelation: acf.as_ref().map(|acf| acf.by_lag.clone()).unwrap_or_default(),
            autocorrelation_bound: acf.map(|acf| acf.bound95),
            ranked_losses: ranked(run).map_or_else(Default::default, |ranked| {
                ranked.map(|node| path(run, node, |score| score.loss))
            }),
            losses: (0..nodes).filter(|_| few).map(|node| path(run, node, |score| score.loss)).collect(),
            latest_losses: if few { latest_losses(run) } else { Vec::new() },
            standings: (0..nodes).filter(|_| few).map(|node| standings(run, node)).collect(),
            watched: run.watched,
            naive: NaiveScores::default(),
        }
    }
}

fn known(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}

fn path(run: &RecordedRun, node: usize, of: fn(&OnlineScore) -> f64) -> Vec<Option<f64>> {
    run.online.iter().map(|round| round.get(node).map(of).and_then(known)).collect()
}

fn standings(run: &RecordedRun, node: usize) -> Vec<Option<f64>> {
    run.log.rounds.iter().map(|round| known(round.standings[node])).collect()
}

/// The loss of a node that received the model in the round.
fn latest_losses(run: &RecordedRun) -> Vec<Option<f64>> {
    let of = |(round, scores): (&evenhand_report::RoundSummary, &Vec<OnlineScore>)| {
        known(scores.get(*round.drawn.first()?)?.loss)
    };
    run.log.rounds.iter().zip(&run.online).map(of).collect()
}

fn final_score(run: &RecordedRun, node: usize) -> Option<f64> {
    let late = &run.online[run.online.len().saturating_sub(FINAL_ROUNDS)..];
    let score = |score: &OnlineScore| known(score.accuracy).or_else(|| known(score.mape));
    let scores: Vec<f64> = late.iter().filter_map(|round| score(round.get(node)?)).collect();
    (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
}

/// Nodes by standing at the end, the lowest first.
fn by_standing(run: &RecordedRun) -> Option<Vec<usize>> {
    let standings = &run.log.rounds.last()?.standings;
    let mut order: Vec<usize> = (0..standings.len()).collect();
    order.sort_by(|a, b| standings[*a].total_cmp(&standings[*b]));
    Some(order)
}

fn lowest(run: &RecordedRun) -> Option<usize> {
    by_standing(run)?.first().copied()
}

fn ranked(run: &RecordedRun) -> Option<[usize; 3]> {
    let order = by_standing(run)?;
    Some([*order.last()?, *order.get(order.len() / 4)?, *order.first()?])
}

/// The recall of the nodes with the highest ζ; none where it is not clear which these are.
fn recall(standings: &[f64], zetas: &[f64]) -> Option<f64> {
    let count = designated(zetas.len());
    let mut bad: Vec<usize> = (0..zetas.len()).collect();
    bad.sort_by(|a, b| zetas[*b].total_cmp(&zetas[*a]));
    let border = (zetas[*bad.get(count.checked_sub(1)?)?], zetas[*bad.get(count)?]);
    let mut low: Vec<usize> = (0..standings.len()).collect();
    low.sort_by(|a, b| standings[*a].total_cmp(&standings[*b]));
    let found = bad[..count].iter().filter(|node| low[..count].contains(node)).count();
    (border.0 > border.1).then(|| found as f64 / count as f64)
}

/// |ψ_t − ψ_{t−1}|_∞.
fn changes(standings: &[&Vec<f64>]) -> Vec<Option<f64>> {
    let change = |(after, before): (&&Vec<f64>, &&Vec<f64>)| {
        let each = after.iter().zip(before.iter()).map(|(after, before)| (after - before).abs());
        known(each.fold(0.0, f64::max))
    };
    std::iter::once(None)
        .chain(standings.iter().skip(1).zip(standings).map(change))
        .take(standings.len())
        .collect()
}

/// |ψ_t − ψ_T|_∞.
fn distances(standings: &[&Vec<f64>]) -> Vec<Option<f64>> {
    let Some(last) = standings.last() else { return Vec::new() };
    let off = |standings: &&Vec<f64>| {
        let each = standings.iter().zip(last.iter()).map(|(now, last)| (now - last).abs());
        known(each.fold(0.0, f64::max))
    };
    standings.iter().map(off).collect()
}

/// p of the paper's rule after each round.
fn p_values(rows: &[Vec<f64>], columns: &[usize], window: usize) -> Vec<Option<f64>> {
    let rows: Vec<Vec<f64>> =
        rows.iter().map(|row| columns.iter().map(|column| row[*column]).collect()).collect();
    let p = |rounds: usize| {
        let before = &rows[..rounds.checked_sub(window).filter(|before| *before > 0)?];
        let mean = |column: usize| before.iter().map(|row| row[column]).sum::<f64>() / before.len() as f64;
        let centre: Vec<f64> = (0..columns.len()).map(mean).collect();
        hotelling::one_sample(&rows[..rounds], &centre).ok().and_then(|test| known(test.p_value))
    };
    (1..=rows.len()).map(p).collect()
}

fn normality(rows: &[Vec<f64>]) -> Option<WindowedNormality> {
    let begins = (0..(rows.len() + 1).saturating_sub(NORMALITY_WINDOW)).step_by(NORMALITY_STRIDE);
    let p: Vec<f64> = begins
        .filter_map(|begin| measures::henze_zirkler(&rows[begin..begin + NORMALITY_WINDOW]).ok())
        .map(|test| test.p_value)
        .filter(|p| p.is_finite())
        .collect();
    let count = p.len() as f64;
    (!p.is_empty()).then(|| WindowedNormality {
        windows: p.len(),
        not_rejected: p.iter().filter(|p| **p >= NORMALITY_LEVEL).count() as f64 / count,
        p_mean: p.iter().sum::<f64>() / count,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recall_is_of_the_three_tenths_with_the_worst_data() {
        let zetas = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.2, 0.2, 0.2];
        let standings = [9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 0.5, 1.0, 2.0, 3.0];
        assert_eq!(recall(&standings, &zetas), Some(2.0 / 3.0));
        assert_eq!(recall(&standings, &[0.1; 10]), None, "nobody is worse than the others");
        assert_eq!(recall(&[], &[]), None);
    }

    #[test]
    fn changes_are_those_of_the_node_that_moved_most() {
        let standings = [vec![1.0, 1.0], vec![1.5, 0.0], vec![1.5, 0.25]];
        assert_eq!(changes(&standings.each_ref()), [None, Some(1.0), Some(0.25)]);
        assert!(changes(&[]).is_empty());
    }

    /// With μ₀ from before the window, p is that of a one-sample test on all rounds.
    #[test]
    fn p_values_begin_after_the_window() {
        let rows: Vec<Vec<f64>> = (0..24).map(|round| vec![f64::from(round * 7 % 5)]).collect();
        let p = p_values(&rows, &[0], 20);
        assert!(p[..20].iter().all(Option::is_none) && p[20].is_some(), "{p:?}");
    }

    #[test]
    fn windows_of_normal_contributions_are_not_rejected_more_often_than_the_level_says() {
        use rand::{RngExt, SeedableRng};
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(3);
        let mut rows = |skewed: bool| -> Vec<Vec<f64>> {
            let mut value = || rng.sample::<f64, _>(rand_distr::StandardNormal);
            (0..300).map(|_| (0..5).map(|_| if skewed { value().exp() } else { value() }).collect()).collect()
        };
        let (normal, skewed) = (normality(&rows(false)), normality(&rows(true)));
        assert!(normal.is_some_and(|test| test.not_rejected > 0.85 && test.windows == 26), "{normal:?}");
        assert!(skewed.is_some_and(|test| test.not_rejected < 0.1), "{skewed:?}");
    }
}
