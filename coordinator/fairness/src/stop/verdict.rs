//! The verdict of a stop rule or a drift test, with its figures and its reason.

use crate::hotelling::{Hotelling, NoStatistic};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The verdict on the contributions so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StopVerdict {
    /// Hotelling's T², once there are rounds enough.
    pub t2: Option<f64>,
    /// T² as an F statistic.
    pub f: Option<f64>,
    /// P(F ≥ f) if nothing has changed.
    pub p_value: Option<f64>,
    /// The same of the test for a slow trend (calibrated rule only).
    pub trend_p_value: Option<f64>,
    /// The widest confidence half-width of a standing (calibrated rule only).
    pub half_width: Option<f64>,
    /// True if exploring ends.
    pub stop: bool,
    /// The columns that were tested.
    pub tested: Vec<usize>,
    /// The reason.
    pub reason: StopReason,
}

/// The reason for stopping, for not stopping yet, or for the result of a drift test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// The paper's rule is satisfied.
    Settled {
        /// p.
        p_value: f64,
        /// α.
        alpha: f64,
    },
    /// The calibrated rule is satisfied.
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
    /// No contribution varies, so there is nothing to wait for.
    NothingVaries,
    /// No node is tested.
    NoTestedNodes,
    /// Too few rounds.
    TooFewRounds {
        /// The number of rounds.
        rounds: usize,
        /// The number that the test needs.
        needed: usize,
    },
    /// A tested node has no finite contribution in some round.
    Absent {
        /// The node's column.
        node: usize,
        /// The round, from 0.
        round: usize,
    },
    /// A tested node's contributions never vary.
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
        /// The value that it has to reach.
        needed: f64,
    },
    /// The contributions move slowly.
    Trending {
        /// p of the test.
        p_value: f64,
        /// The value that it has to reach.
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
    /// Drift test: the contributions have moved since the exploration.
    Moved {
        /// p of the test.
        p_value: f64,
    },
    /// Drift test: the contributions are as in the exploration.
    Holds {
        /// p of the test.
        p_value: f64,
    },
    /// Drift test: no statistic, for want of rounds or of variation.
    Untestable,
}

impl fmt::Display for StopReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Settled { p_value, alpha } => {
                write!(out, "settled: p = {p_value:.4} reaches alpha = {alpha}")
            }
            Self::SteadyAndPrecise { p_value, trend_p_value, half_width, allowed } => write!(
                out,
                "settled: no drift (p = {p_value:.4}), no trend (p = {trend_p_value:.4}), \
                 and every standing within ±{half_width:.3e} (allowed {allowed:.3e})"
            ),
            Self::NothingVaries => write!(out, "settled: no contribution varies"),
            Self::NoTestedNodes => write!(out, "not yet, because no node is tested"),
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
                write!(out, "not yet, because the covariance of the tested nodes is singular")
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
            Self::Moved { p_value } => {
                write!(out, "contributions have moved: p = {p_value:.2e}; they are measured again")
            }
            Self::Holds { p_value } => write!(out, "contributions still hold: p = {p_value:.3}"),
            Self::Untestable => {
                write!(
                    out,
                    "too few rounds, or too little variation, to tell whether contributions still hold"
                )
            }
        }
    }
}

impl fmt::Display for StopVerdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(out)
    }
}

impl StopReason {
    pub(super) fn of(none: NoStatistic, rounds: usize, tested: &[usize]) -> Self {
        match none {
            NoStatistic::TooFew { needed } => Self::TooFewRounds { rounds, needed },
            NoStatistic::Constant { column } => Self::Constant { node: tested[column] },
            NoStatistic::Singular => Self::Singular,
        }
    }
}

impl StopVerdict {
    /// Not yet, without a statistic.
    pub(super) fn not_yet(tested: &[usize], reason: StopReason) -> Self {
        Self {
            t2: None,
            f: None,
            p_value: None,
            trend_p_value: None,
            half_width: None,
            stop: false,
            tested: tested.to_vec(),
            reason,
        }
    }

    /// A verdict with the figures of a test.
    pub(super) fn on(test: Hotelling, tested: &[usize], stop: bool, reason: StopReason) -> Self {
        let Hotelling { t2, f, p_value } = test;
        Self { t2: Some(t2), f: Some(f), p_value: Some(p_value), stop, ..Self::not_yet(tested, reason) }
    }
}
