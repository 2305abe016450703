//! What each node contributed in a round.

use super::{
    additive,
    appraisal::{Appraisal, Estimator, Utility, Weighting},
    course::Course,
    error::FairnessError,
    game::{Cosine, Game, Scored, StreamedCosine},
    gram::{Device, Gram},
    shapley::{self, Effort},
};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// φᵢ,ₜ of one round, a value for each update in the order given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contributions {
    /// φᵢ or its estimate.
    pub values: Vec<f64>,
    /// The standard error of each value: 0 where it is exact, NaN where one sample leaves it unknown.
    pub standard_errors: Vec<f64>,
}

/// Values an update: the score of the model moved by it.
pub type Scorer<'a> = dyn FnMut(&[f32]) -> f64 + 'a;

/// φᵢ of each update under a gradient utility; under [`Utility::Course`], as in a first round.
pub fn contributions(
    updates: &[&[f32]],
    weights: &[f64],
    appraisal: &Appraisal,
    rng: &mut ChaCha8Rng,
) -> Result<Contributions, FairnessError> {
    check(updates, weights, appraisal)?;
    let coalition = coalition_weights(weights, appraisal.weighting);
    let contributions = match appraisal.utility {
        Utility::InnerProduct | Utility::Projection => {
            let contributions = match appraisal.utility {
                Utility::Projection => additive::projection(updates, weights, &coalition),
                _ => additive::inner_product(updates, weights, &coalition),
            };
            // Looked for only where it shows: the updates are not read once more for it.
            if contributions.values.iter().any(|value| !value.is_finite()) {
                all_finite_updates(updates)?;
            }
            contributions
        }
        Utility::Cosine if streams(updates.len(), appraisal) => {
            let mut game = StreamedCosine::new(updates, weights, &coalition);
            if let Some(i) = game.without_norm() {
                return Err(without_norm(updates, i));
            }
            shapley::permutation(&mut game, effort(appraisal), rng)?
        }
        Utility::Cosine | Utility::LeaveOneOut => {
            let gram = Gram::on(appraisal.device, updates)?;
            if let Some(i) = (0..gram.size()).find(|&i| !gram.get(i, i).is_finite()) {
                return Err(without_norm(updates, i));
            }
            let mut game = Cosine::new(&gram, weights, &coalition);
            if appraisal.utility == Utility::LeaveOneOut {
                shapley::leave_one_out(&mut game)
            } else {
                estimate(&mut game, appraisal, rng)?
            }
        }
        Utility::Course => Course::default().turn(updates, weights, &coalition, appraisal)?.0,
        scored => {
            return Err(FairnessError::WrongEntry {
                utility: scored.name(),
                remedy: "needs validation data to score models on",
            });
        }
    };
    all_finite(contributions)
}

/// φᵢ of each update under a utility that scores models: `score(g_S)` is the worth of θ_{t−1} moved
/// by g_S.
pub fn contributions_scored(
    updates: &[&[f32]],
    weights: &[f64],
    appraisal: &Appraisal,
    score: &mut Scorer<'_>,
    rng: &mut ChaCha8Rng,
) -> Result<Contributions, FairnessError> {
    check(updates, weights, appraisal)?;
    if !appraisal.utility.is_scored() {
        return contributions(updates, weights, appraisal, rng);
    }
    let coalition = coalition_weights(weights, appraisal.weighting);
    let mut game = Scored::new(updates, &coalition, score);
    all_finite(estimate(&mut game, appraisal, rng)?)
}

/// φᵢ of each update under [`Utility::Course`], and the course after the round.
pub fn contributions_on_course(
    course: &Course,
    updates: &[&[f32]],
    weights: &[f64],
    appraisal: &Appraisal,
) -> Result<(Contributions, Course), FairnessError> {
    check(updates, weights, appraisal)?;
    let coalition = coalition_weights(weights, appraisal.weighting);
    let (contributions, turned) = course.turn(updates, weights, &coalition, appraisal)?;
    Ok((all_finite(contributions)?, turned))
}

fn estimate(
    game: &mut impl Game,
    appraisal: &Appraisal,
    rng: &mut ChaCha8Rng,
) -> Result<Contributions, FairnessError> {
    let effort = effort(appraisal);
    match appraisal.estimator {
        Estimator::Exact => shapley::exact(game),
        Estimator::Stratified => shapley::stratified(game, effort, rng),
        Estimator::StratifiedIndependent => shapley::stratified_independent(game, effort, rng),
        Estimator::Permutation => shapley::permutation(game, effort, rng),
    }
}

fn effort(appraisal: &Appraisal) -> Effort {
    Effort { samples: appraisal.samples, standard_error: appraisal.standard_error }
}

/// Orders for which walking on the updates costs as much as one node's share of the Gram matrix: a
/// product of the matrix is computed that much faster than a step of the walk.
const PRODUCTS_A_STEP: usize = 32;

/// Whether so many nodes are better walked than multiplied: samples × N passes over an update grow
/// with N, the Gram matrix with its square.
fn streams(nodes: usize, appraisal: &Appraisal) -> bool {
    appraisal.estimator == Estimator::Permutation
        && appraisal.device == Device::Cpu
        && nodes > PRODUCTS_A_STEP.saturating_mul(appraisal.samples)
}

fn coalition_weights(weights: &[f64], weighting: Weighting) -> Vec<f64> {
    match weighting {
        Weighting::Once => weights.to_vec(),
        Weighting::Twice => weights.iter().map(|p| p * p).collect(),
    }
}

fn check(updates: &[&[f32]], weights: &[f64], appraisal: &Appraisal) -> Result<(), FairnessError> {
    let first = updates.first().ok_or(FairnessError::Empty { field: "updates" })?;
    for (i, update) in updates.iter().enumerate() {
        if update.len() != first.len() {
            return Err(FairnessError::Length {
                field: format!("updates[{i}]"),
                found: update.len(),
                expected: first.len(),
            });
        }
    }
    if weights.len() != updates.len() {
        return Err(FairnessError::Length {
            field: "weights".into(),
            found: weights.len(),
            expected: updates.len(),
        });
    }
    for (i, &weight) in weights.iter().enumerate() {
        let field = || format!("weights[{i}]");
        if !weight.is_finite() {
            return Err(FairnessError::NotFinite { field: field() });
        }
        if weight < 0.0 {
            return Err(FairnessError::OutOfRange { field: field(), found: weight, wanted: "at least 0" });
        }
    }
    if !(0.0..1.0).contains(&appraisal.course_kept) {
        return Err(FairnessError::OutOfRange {
            field: "course_kept".into(),
            found: appraisal.course_kept,
            wanted: "at least 0 and below 1",
        });
    }
    match appraisal.standard_error {
        Some(error) if error.is_nan() || error <= 0.0 => {
            Err(FairnessError::OutOfRange { field: "standard_error".into(), found: error, wanted: "above 0" })
        }
        _ => Ok(()),
    }
}

fn all_finite_updates(updates: &[&[f32]]) -> Result<(), FairnessError> {
    match updates.iter().position(|update| update.iter().any(|value| !value.is_finite())) {
        Some(i) => Err(FairnessError::NotFinite { field: format!("updates[{i}]") }),
        None => Ok(()),
    }
}

/// Why the update of node i has no norm.
fn without_norm(updates: &[&[f32]], i: usize) -> FairnessError {
    match all_finite_updates(updates) {
        Err(error) => error,
        Ok(()) => FairnessError::TooLarge { field: format!("updates[{i}]") },
    }
}

fn all_finite(contributions: Contributions) -> Result<Contributions, FairnessError> {
    match contributions.values.iter().position(|value| !value.is_finite()) {
        Some(i) => Err(FairnessError::NotFinite { field: format!("contributions[{i}]") }),
        None => Ok(contributions),
    }
}
