//! From updates to contributions.

use super::assert_close;
use evenhand_fairness::{
    ContributionConfig, Contributions, Estimator, FairnessError, Gram, Utility, Weighting, contributions,
    game::{CosineGame, FunctionGame},
    shapley,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const ESTIMATORS: [Estimator; 4] =
    [Estimator::Exact, Estimator::Stratified, Estimator::StratifiedIndependent, Estimator::Permutation];

fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(17)
}

fn updates(nodes: usize, dim: usize) -> Vec<Vec<f32>> {
    let mut rng = rng();
    (0..nodes).map(|_| (0..dim).map(|_| rng.random_range(-0.6..1.0)).collect()).collect()
}

fn value(
    updates: &[Vec<f32>],
    weights: &[f64],
    config: ContributionConfig,
) -> Result<Contributions, FairnessError> {
    let slices: Vec<&[f32]> = updates.iter().map(Vec::as_slice).collect();
    contributions(&slices, weights, &config, &mut rng())
}

fn exactly(utility: Utility) -> ContributionConfig {
    ContributionConfig { utility, estimator: Estimator::Exact, ..ContributionConfig::default() }
}

/// g_S from the vectors themselves.
fn sum(updates: &[Vec<f32>], weights: &[f64], members: &[bool]) -> Vec<f64> {
    let value = |d: usize| {
        (0..updates.len()).filter(|i| members[*i]).map(|i| weights[i] * f64::from(updates[i][d])).sum()
    };
    (0..updates[0].len()).map(value).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    if dot(a, a) == 0.0 { 0.0 } else { dot(a, b) / (dot(a, a) * dot(b, b)).sqrt() }
}

#[test]
fn the_inner_product_has_its_closed_form_whatever_the_estimator() {
    let (updates, weights) = (updates(6, 9000), [0.3, 0.1, 0.2, 0.15, 0.05, 0.2]);
    let whole = sum(&updates, &weights, &[true; 6]);
    let mut game = FunctionGame::new(6, |s: &[bool]| dot(&sum(&updates, &weights, s), &whole));
    let known = shapley::exact(&mut game).unwrap().values;
    for estimator in ESTIMATORS {
        let config =
            ContributionConfig { utility: Utility::InnerProduct, estimator, ..ContributionConfig::default() };
        let found = value(&updates, &weights, config).unwrap();
        assert_close(&found.values, &known, 1e-10);
        assert_eq!(found.standard_errors, [0.0; 6]);
    }
}

#[test]
fn the_projection_is_the_inner_product_in_shares_of_the_whole() {
    let (updates, weights) = (updates(6, 9000), [0.3, 0.1, 0.2, 0.15, 0.05, 0.2]);
    let whole = sum(&updates, &weights, &[true; 6]);
    let mut game =
        FunctionGame::new(6, |s: &[bool]| dot(&sum(&updates, &weights, s), &whole) / dot(&whole, &whole));
    let known = shapley::exact(&mut game).unwrap().values;
    let config = ContributionConfig { utility: Utility::Projection, ..ContributionConfig::default() };
    let found = value(&updates, &weights, config).unwrap();
    assert_close(&found.values, &known, 1e-10);
    assert!((found.values.iter().sum::<f64>() - 1.0).abs() < 1e-12, "the whole has the value 1");
    for last in [-0.1f32, -0.1 + 1e-8] {
        let opposed = [vec![1.0f32, 0.1], vec![-1.0, last]];
        let found = value(&opposed, &[0.5, 0.5], config).unwrap().values;
        assert_eq!(found, [0.0, 0.0], "they cancel up to rounding: there is no way to go");
    }
}

#[test]
fn a_zero_update_contributes_nothing() {
    let mut updates = updates(5, 100);
    updates[3].fill(0.0);
    for utility in [
        Utility::InnerProduct,
        Utility::Projection,
        Utility::Direction,
        Utility::Cosine,
        Utility::LeaveOneOut,
    ] {
        for estimator in ESTIMATORS {
            for weighting in [Weighting::Once, Weighting::Twice] {
                let config =
                    ContributionConfig { utility, estimator, weighting, ..ContributionConfig::default() };
                assert_eq!(value(&updates, &[0.2; 5], config).unwrap().values[3], 0.0, "{config:?}");
            }
        }
    }
}

#[test]
fn updates_that_cancel_have_no_direction() {
    let one = updates(1, 5000).remove(0);
    let opposed: Vec<f32> = one.iter().map(|x| -x).collect();
    let found = value(&[one, opposed], &[0.5; 2], exactly(Utility::Cosine)).unwrap();
    assert_eq!(found.values, [0.0, 0.0]);
}

#[test]
fn a_lone_node_contributes_all() {
    let found = value(&updates(1, 50), &[1.0], ContributionConfig::default()).unwrap();
    assert_close(&found.values, &[1.0], 1e-12);
}

/// A node whose update dwarfs the others' must not drown what is said about them.
#[test]
fn a_huge_update_leaves_the_others_precise() {
    let mut updates = updates(7, 300);
    updates[2].iter_mut().for_each(|x| *x *= 1e6);
    let weights = [1.0 / 7.0; 7];
    let whole = sum(&updates, &weights, &[true; 7]);
    // Every size of coalition without 2, each after 2 was a member.
    let mut game = FunctionGame::new(7, |s: &[bool]| cosine(&sum(&updates, &weights, s), &whole));
    let effort = shapley::Effort { samples: 200, standard_error: None };
    let known = shapley::stratified(&mut game, effort, &mut rng()).unwrap().values;
    let config = ContributionConfig { samples: 200, ..ContributionConfig::default() };
    assert_close(&value(&updates, &weights, config).unwrap().values, &known, 1e-5);
}

#[test]
fn leave_one_out_is_the_cosine_lost() {
    let (updates, weights) = (updates(4, 60), [0.4, 0.3, 0.2, 0.1]);
    let whole = sum(&updates, &weights, &[true; 4]);
    let without = |i: usize| {
        let members: Vec<bool> = (0..4).map(|j| j != i).collect();
        1.0 - cosine(&sum(&updates, &weights, &members), &whole)
    };
    let known: Vec<f64> = (0..4).map(without).collect();
    assert_close(&value(&updates, &weights, exactly(Utility::LeaveOneOut)).unwrap().values, &known, 1e-5);
}

/// A quadratic loss has interactions of order two, so antithetic pairs are exact.
#[test]
fn antithetic_pairs_are_exact_for_a_quadratic_loss() {
    let (updates, weights) = (updates(5, 40), [0.1, 0.2, 0.3, 0.25, 0.15]);
    let loss = |update: &[f64]| {
        update.iter().enumerate().map(|(d, x)| (1.0 / (d + 1) as f64 - x).powi(2)).sum::<f64>()
    };
    let game = || FunctionGame::new(5, |s: &[bool]| -loss(&sum(&updates, &weights, s)));
    let known = shapley::exact(&mut game()).unwrap().values;
    let effort = shapley::Effort { samples: 2, standard_error: None };
    for estimator in ESTIMATORS.into_iter().filter(|one| *one != Estimator::StratifiedIndependent) {
        assert_close(&estimator.estimate(&mut game(), effort, &mut rng()).unwrap().values, &known, 1e-4);
    }
}

#[test]
fn the_same_seed_gives_the_same_values() {
    let updates = updates(12, 500);
    for estimator in ESTIMATORS {
        let config = ContributionConfig { estimator, ..ContributionConfig::default() };
        let of = || value(&updates, &[1.0 / 12.0; 12], config).unwrap();
        assert_eq!(of(), of());
    }
}

#[test]
fn invalid_inputs_are_named() {
    let refused = |updates: &[Vec<f32>], weights: &[f64], config: ContributionConfig| {
        value(updates, weights, config).unwrap_err().to_string()
    };
    let (two, half) = (vec![vec![1.0, 2.0], vec![3.0, 4.0]], [0.5, 0.5]);
    let cosine = ContributionConfig::default();
    assert_eq!(refused(&[], &[], cosine), "updates is empty");
    assert_eq!(refused(&[vec![1.0, 2.0], vec![3.0]], &half, cosine), "updates[1] has 1 values, expected 2");
    assert_eq!(refused(&two, &[1.0], cosine), "weights has 1 values, expected 2");
    assert_eq!(refused(&two, &[0.5, -0.5], cosine), "weights[1] = -0.5 must be at least 0");
    assert_eq!(refused(&two, &[f64::NAN, 0.5], cosine), "weights[0] is not finite");
    assert_eq!(
        refused(&two, &half, ContributionConfig { samples: 0, ..cosine }),
        "samples = 0 must be at least 1"
    );
    assert_eq!(
        refused(&two, &half, ContributionConfig { standard_error: Some(0.0), ..cosine }),
        "standard_error = 0 must be above 0"
    );
    for utility in [Utility::InnerProduct, Utility::Cosine] {
        for bad in [f32::NAN, f32::INFINITY] {
            let config = ContributionConfig { utility, ..cosine };
            assert_eq!(refused(&[vec![1.0, 2.0], vec![3.0, bad]], &half, config), "updates[1] is not finite");
        }
    }
    assert_eq!(
        refused(&[vec![1e20, 2.0], vec![3.0, 1.0]], &half, cosine),
        "updates[0] holds values too large to square in single precision"
    );
    let many = updates(25, 3);
    assert!(refused(&many, &[0.04; 25], exactly(Utility::Cosine)).contains("beyond 20 nodes use stratified"));
    let slices: Vec<&[f32]> = two.iter().map(Vec::as_slice).collect();
    let mut score = |_: &[f32]| f64::NAN;
    let mut game = ScoredGame::new(&slices, &half, &mut score);
    let nan = shapley::exact(&mut game).and_then(Contributions::finite);
    assert_eq!(nan.unwrap_err().to_string(), "contributions[0] is not finite");
}

/// Many nodes are valued on their updates, fewer on a Gram matrix: the same orders then give the same values.
#[test]
fn beyond_the_gram_matrix_contributions_stay_what_they_were() {
    let updates = updates(70, 300);
    let slices: Vec<&[f32]> = updates.iter().map(Vec::as_slice).collect();
    let weights: Vec<f64> = (0..70).map(|i| f64::from(1 + i % 7) / 280.0).collect();
    for weighting in [Weighting::Once, Weighting::Twice] {
        let config = ContributionConfig {
            estimator: Estimator::Permutation,
            samples: 2,
            weighting,
            ..ContributionConfig::default()
        };
        let streamed = value(&updates, &weights, config).unwrap();
        let gram = Gram::of(&slices);
        let coalition: Vec<f64> = match weighting {
            Weighting::Once => weights.clone(),
            Weighting::Twice => weights.iter().map(|p| p * p).collect(),
        };
        let effort = shapley::Effort { samples: 2, standard_error: None };
        let known =
            shapley::permutation(&mut CosineGame::new(&gram, &weights, &coalition), effort, &mut rng())
                .unwrap();
        assert_ne!(streamed.values, known.values, "both ways were taken");
        // The products are summed in single precision; a contribution is a difference of cosines, at most 1.
        let apart = streamed.values.iter().zip(&known.values).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(apart < 1e-7, "{apart}");
    }
}

#[test]
fn invalid_updates_of_many_nodes_are_named() {
    let mut updates = updates(70, 300);
    let config =
        ContributionConfig { estimator: Estimator::Permutation, samples: 2, ..ContributionConfig::default() };
    updates[41][7] = f32::NAN;
    let error = value(&updates, &[1.0 / 70.0; 70], config).unwrap_err();
    assert_eq!(error, FairnessError::NotFinite { field: "updates[41]".into() });
}
