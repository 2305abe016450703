//! When the standings are settled: the rules that end the exploring phase.

mod calibrated;
mod paper;

use super::hotelling::{self, Hotelling, NoStatistic};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A stop rule and its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "kebab-case", deny_unknown_fields)]
pub enum StopRule {
    /// The paper's.
    Paper {
        /// τ: the last rounds left out of μ₀.
        window: usize,
        /// α: stop at p ≥ α.
        strictness: f64,
    },
    /// Ours, with error rates that are what they say.
    Calibrated {
        /// τ: the last rounds, tested against those before.
        window: usize,
        /// The error rate: of each drift test at a look, and of the confidence intervals over all looks.
        level: f64,
        /// The largest half-width allowed, in units of the temperature β.
        precision: f64,
    },
}

impl Default for StopRule {
    fn default() -> Self {
        Self::Paper { window: 15, strictness: 0.7 }
    }
}

/// What a rule says after a round, with the figures it says it on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Hotelling's T², once there are rounds enough.
    pub t2: Option<f64>,
    /// T² as an F statistic.
    pub f: Option<f64>,
    /// P(F ≥ f) if nothing has changed.
    pub p_value: Option<f64>,
    /// The same of the test for a slow trend (calibrated rule only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trend_p_value: Option<f64>,
    /// The widest confidence half-width of a standing (calibrated rule only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_width: Option<f64>,
    /// Whether to stop exploring.
    pub stop: bool,
    /// Why, or why not yet.
    pub reason: Reason,
}

/// Why a rule says stop, or not yet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reason {
    /// The paper's rule is content.
    Settled {
        /// p.
        p_value: f64,
        /// α.
        strictness: f64,
    },
    /// The calibrated rule is content.
    SteadyAndPrecise {
        /// p of the drift test.
        p_value: f64,
        /// p of the trend test.
        trend_p_value: f64,
        /// The widest half-width.
        half_width: f64,
        /// The widest allowed.
        allowed: f64,
    },
    /// There is nothing to wait for.
    Still,
    /// No node is watched.
    NobodyWatched,
    /// Too few rounds.
    TooFewRounds {
        /// How many there are.
        rounds: usize,
        /// How many there have to be.
        needed: usize,
    },
    /// A watched node has no finite contribution in some round.
    Absent {
        /// The node's column.
        node: usize,
        /// The round, from 0.
        round: usize,
    },
    /// A watched node's contributions never vary.
    Constant {
        /// The node's column.
        node: usize,
    },
    /// The covariance cannot be inverted.
    Singular,
    /// The contributions still move.
    Moving {
        /// p of the test.
        p_value: f64,
        /// What it has to reach.
        needed: f64,
    },
    /// The contributions move slowly.
    Trending {
        /// p of the test.
        p_value: f64,
        /// What it has to reach.
        needed: f64,
    },
    /// The standings are not known precisely enough.
    Imprecise {
        /// The node with the widest interval.
        node: usize,
        /// Its half-width.
        half_width: f64,
        /// The widest allowed.
        allowed: f64,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Settled { p_value, strictness } => {
                write!(out, "settled: p = {p_value:.4} reaches the strictness {strictness}")
            }
            Self::SteadyAndPrecise { p_value, trend_p_value, half_width, allowed } => write!(
                out,
                "settled: no drift (p = {p_value:.4}), no trend (p = {trend_p_value:.4}), \
                 and every standing within ±{half_width:.3e} (allowed {allowed:.3e})"
            ),
            Self::Still => write!(out, "settled: no contribution varies"),
            Self::NobodyWatched => write!(out, "not yet, because no node is watched"),
            Self::TooFewRounds { rounds, needed } => {
                write!(out, "not yet, because {rounds} rounds are too few: the test needs {needed}")
            }
            Self::Absent { node, round } => {
                write!(out, "not yet, because node {node} has no contribution in round {}", round + 1)
            }
            Self::Constant { node } => {
                write!(out, "not yet, because the contributions of node {node} never vary")
            }
            Self::Singular => {
                write!(out, "not yet, because the covariance of the watched nodes is singular")
            }
            Self::Moving { p_value, needed } => {
                write!(out, "not yet, because contributions still move: p = {p_value:.4} is below {needed}")
            }
            Self::Trending { p_value, needed } => {
                write!(out, "not yet, because contributions show a trend: p = {p_value:.4} is below {needed}")
            }
            Self::Imprecise { node, half_width, allowed } => write!(
                out,
                "not yet, because the standing of node {node} is known to ±{half_width:.3e} only (allowed {allowed:.3e})"
            ),
        }
    }
}

impl Serialize for Reason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Verdict {
    fn not_yet(reason: Reason) -> Self {
        Self { t2: None, f: None, p_value: None, trend_p_value: None, half_width: None, stop: false, reason }
    }

    fn on(test: Hotelling, stop: bool, reason: Reason) -> Self {
        let Hotelling { t2, f, p_value } = test;
        Self { t2: Some(t2), f: Some(f), p_value: Some(p_value), stop, ..Self::not_yet(reason) }
    }
}

impl StopRule {
    /// The rule's verdict on the contributions so far: `history` has a row for each round and a column
    /// for each node, `watched` are the columns tested (M of them), `temperature` is β.
    pub fn judge(&self, history: &[Vec<f64>], watched: &[usize], temperature: f64) -> Verdict {
        if watched.is_empty() {
            return Verdict::not_yet(Reason::NobodyWatched);
        }
        let columns = match columns_of(history, watched) {
            Ok(columns) => columns,
            Err(reason) => return Verdict::not_yet(reason),
        };
        match *self {
            Self::Paper { window, strictness } => paper::judge(&columns, watched, window, strictness),
            Self::Calibrated { window, level, precision } => {
                calibrated::judge(history, &columns, watched, window, level, precision * temperature)
            }
        }
    }
}

impl StopRule {
    /// The same on the first `most` of the `candidates` that tell something of their own, see
    /// [`telling`](hotelling::telling); and which those were.
    ///
    /// Departs from the paper, whose covariance has no inverse when a watched node keeps silent, or when all nodes are
    /// watched and their contributions sum to 1: one node could then keep everybody exploring for ever.
    pub fn judge_telling(
        &self,
        history: &[Vec<f64>],
        candidates: &[usize],
        most: usize,
        temperature: f64,
    ) -> (Verdict, Vec<usize>) {
        let (Self::Paper { window, .. } | Self::Calibrated { window, .. }) = *self;
        let founders = history.first().map_or(0, Vec::len);
        let whole = |node: &usize| *node < founders && history.iter().all(|row| row[*node].is_finite());
        let candidates: Vec<usize> = candidates.iter().copied().filter(whole).collect();
        if history.len() <= window {
            let watched = candidates[..most.min(candidates.len())].to_vec();
            return (self.judge(history, &watched, temperature), watched);
        }
        let mut watched = hotelling::telling(history, &candidates, most);
        watched.sort_unstable();
        let verdict = match watched.is_empty() && !candidates.is_empty() {
            true => Verdict { stop: true, ..Verdict::not_yet(Reason::Still) },
            false => self.judge(history, &watched, temperature),
        };
        (verdict, watched)
    }
}

fn columns_of(history: &[Vec<f64>], watched: &[usize]) -> Result<Vec<Vec<f64>>, Reason> {
    let watched_of = |(round, row): (usize, &Vec<f64>)| {
        let value = |&node: &usize| {
            row.get(node).copied().filter(|value| value.is_finite()).ok_or(Reason::Absent { node, round })
        };
        watched.iter().map(value).collect()
    };
    history.iter().enumerate().map(watched_of).collect()
}

fn why_not(none: NoStatistic, rounds: usize, watched: &[usize]) -> Reason {
    match none {
        NoStatistic::TooFew { needed } => Reason::TooFewRounds { rounds, needed },
        NoStatistic::Constant { column } => Reason::Constant { node: watched[column] },
        NoStatistic::Singular => Reason::Singular,
    }
}
