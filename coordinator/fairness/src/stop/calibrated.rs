//! Our rule: no visible drift, and standings as precise as their use demands.

use super::{StopReason, StopVerdict};
use crate::hotelling;

/// Stops when (a) contributions do not drift: neither does the two-sample T² of the last τ rounds
/// against those before reject equal means at `level`, nor the T² of the slopes over all rounds a mean
/// that stays; and (b) every node's standing is known to ±`allowed`, precision·β.
///
/// Guarantees, for rounds that are independent and normal:
/// - Whenever the rule stops on contributions that have settled, all standings are off by more than
///   `allowed` with probability at most `level`. This holds for the rule as it is run, with a look after
///   every round: (b) uses intervals that are valid in all rounds at once, see [`Boundary`].
/// - Either test keeps a settled fleet from stopping at a look with probability `level`.
/// - Whether contributions that move are noticed is a matter of power, and a look every round gives drift
///   many chances to hide. The window alone misses slow drift then, so the slopes are tested as well, which
///   see it long before it exceeds what (b) allows. docs/fairness.md has the measured rates.
///
/// (b) is asked of every node, since the standings of all decide who is drawn; (a) of the tested ones,
/// whose covariance has to be estimated.
pub(super) fn judge(
    history: &[Vec<f64>],
    rows: &[Vec<f64>],
    tested: &[usize],
    window: usize,
    level: f64,
    allowed: f64,
) -> StopVerdict {
    let (rounds, needed) = (rows.len(), window.max(tested.len()) + 2);
    if rounds < needed {
        return StopVerdict::not_yet(tested, StopReason::TooFewRounds { rounds, needed });
    }
    let (before, last) = rows.split_at(rounds - window);
    let tests = hotelling::two_sample(before, last, tested.len())
        .and_then(|drift| Ok((drift, hotelling::trend(rows, tested.len())?)));
    let (drift, trend) = match tests {
        Err(none) => return StopVerdict::not_yet(tested, StopReason::of(none, rounds, tested)),
        Ok(tests) => tests,
    };
    let (node, half_width) = widest(history, level, window);
    let (p_value, trend_p_value) = (drift.p_value, trend.p_value);
    let (stop, reason) = if p_value < level {
        (false, StopReason::Moving { p_value, needed: level })
    } else if trend_p_value < level {
        (false, StopReason::Trending { p_value: trend_p_value, needed: level })
    } else if half_width > allowed {
        (false, StopReason::Imprecise { node, half_width, allowed })
    } else {
        (true, StopReason::SteadyAndPrecise { p_value, trend_p_value, half_width, allowed })
    };
    StopVerdict {
        trend_p_value: Some(trend_p_value),
        half_width: Some(half_width),
        ..StopVerdict::on(drift, tested, stop, reason)
    }
}

/// The node with the widest interval, and its half-width; a node that is missing from a round counts
/// as having contributed nothing in it.
fn widest(history: &[Vec<f64>], level: f64, window: usize) -> (usize, f64) {
    let nodes = history.iter().map(Vec::len).max().unwrap_or(0);
    let bound = Boundary::new(level / nodes as f64, 4.0 * window as f64);
    let value = |row: &Vec<f64>, node: usize| row.get(node).copied().filter(|v| v.is_finite()).unwrap_or(0.0);
    let n = history.len() as f64;
    let half_width = |node: usize| {
        let mean = history.iter().map(|row| value(row, node)).sum::<f64>() / n;
        let square: f64 = history.iter().map(|row| (value(row, node) - mean).powi(2)).sum();
        (node, bound.half_width(n, square / (n - 1.0)))
    };
    (0..nodes).map(half_width).fold((0, 0.0), |most, one| if one.1 > most.1 { one } else { most })
}

/// A confidence sequence for a normal mean of unknown variance, valid at all rounds at once.
///
/// With the t statistic of a candidate mean μ, the mixture over effect sizes δ ~ N(0, 1/c²) of the
/// scale-invariant likelihood ratio is
/// G_n(μ) = √(c²/(n+c²)) · [(1 + t²/(n−1)) / (1 + c²/(n+c²)·t²/(n−1))]^{n/2},
/// a martingale of mean 1 when μ is true (Lai 1976). By Ville's inequality it ever reaches 1/α with
/// probability at most α, so {μ: G_n(μ) < 1/α} covers the truth in every round with probability
/// 1 − α, whichever round one stops in. Solved for t² that is an interval around the running mean.
struct Boundary {
    alpha: f64,
    c2: f64,
}

impl Boundary {
    /// Tightest near `tightest_at` rounds; valid for any choice of it.
    fn new(alpha: f64, tightest_at: f64) -> Self {
        let log = -2.0 * alpha.ln();
        Self { alpha, c2: tightest_at / (log + (1.0 + log).ln()) }
    }

    fn half_width(&self, n: f64, variance: f64) -> f64 {
        if variance == 0.0 {
            return 0.0;
        }
        let shrink = self.c2 / (n + self.c2);
        let k = ((-2.0 * self.alpha.ln() - shrink.ln()) / n).exp();
        if k * shrink >= 1.0 {
            return f64::INFINITY;
        }
        let t2 = (n - 1.0) * (k - 1.0) / (1.0 - k * shrink);
        (t2 * variance / n).sqrt()
    }
}
