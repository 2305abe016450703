//! An attack: the analytic start, the public guess and random starts, each refined; the best fit is what was recovered.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use super::least_squares::{GUESS_WEIGHT, GUESS_WEIGHT_MIN, SearchEffort, Solution, refine};
use super::problem::LeakProblem;
use super::span::by_span;

/// How hard to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttackEffort {
    /// Starts of the search, the analytic one and the public guess among them.
    pub starts: usize,
    /// Effort of each.
    pub each: SearchEffort,
}

/// A misfit at which the readings were found, so that no further start is needed.
const FOUND: f64 = 1e-5;

/// A misfit at which the search has found nothing.
const UNFIT: f64 = 0.01;

/// The readings that fit the update best.
pub fn attack(problem: &LeakProblem, effort: AttackEffort, seed: u64) -> Solution {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let count = problem.unknowns.len();
    let analytic_start = by_span(problem);
    // What is in the span of the samples is known almost exactly: the public guess must not draw it away.
    let analytic = analytic_start.clone().map(|start| (start, GUESS_WEIGHT_MIN)).into_iter();
    let random = std::iter::repeat_with(|| {
        ((0..count).map(|_| 0.7 * rng.sample::<f64, _>(StandardNormal)).collect(), GUESS_WEIGHT)
    });
    let starts = analytic.chain([(vec![0.0; count], GUESS_WEIGHT)]).chain(random).take(effort.starts.max(1));
    let mut best: Option<Solution> = None;
    for (start, guess_weight) in starts {
        let found = refine(problem, &start, guess_weight, effort.each);
        if best.as_ref().is_none_or(|best| found.misfit < best.misfit) {
            best = Some(found);
        }
        if best.as_ref().is_some_and(|best| best.misfit < FOUND) {
            break;
        }
    }
    if let Some(deviations) = analytic_start
        && best.as_ref().is_none_or(|best| best.misfit > UNFIT + 2.0 * problem.seen.noise_share())
    {
        // Targets of a pinball loss show by their sides alone, so that nothing else fits; the inputs are known all the same.
        return Solution { deviations, misfit: best.map_or(f64::INFINITY, |best| best.misfit) };
    }
    best.unwrap_or(Solution { deviations: vec![0.0; count], misfit: f64::INFINITY })
}
