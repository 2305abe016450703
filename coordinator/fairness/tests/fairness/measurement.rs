//! Measurements from round to round: saved, restored, and unchanged by an error.

use evenhand_fairness::utility::DirectionEma;
use evenhand_fairness::{
    ContributionConfig, Estimator, FairnessError, Measurement, Utility, UtilityState, contributions,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const UTILITIES: [Utility; 5] =
    [Utility::InnerProduct, Utility::Cosine, Utility::LeaveOneOut, Utility::Projection, Utility::Direction];

fn measurement(utility: Utility) -> Measurement {
    Measurement::new(ContributionConfig { utility, ..ContributionConfig::default() })
}

fn round(seed: u64) -> Vec<Vec<f32>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..5).map(|_| (0..30).map(|_| rng.random_range(-0.6..1.0)).collect()).collect()
}

fn slices(updates: &[Vec<f32>]) -> Vec<&[f32]> {
    updates.iter().map(Vec::as_slice).collect()
}

const WEIGHTS: [f64; 5] = [0.1, 0.2, 0.3, 0.25, 0.15];

#[test]
fn a_restored_measurement_continues_bit_for_bit() {
    for utility in UTILITIES {
        let (mut running, mut rng) = (measurement(utility), ChaCha8Rng::seed_from_u64(1));
        for seed in 0..4 {
            let updates = round(seed);
            let saved = postcard::to_allocvec(&running).unwrap();
            let (mut restored, mut restored_rng): (Measurement, _) =
                (postcard::from_bytes(&saved).unwrap(), rng.clone());
            let found = running.measure(&slices(&updates), &WEIGHTS, &mut rng).unwrap();
            let again = restored.measure(&slices(&updates), &WEIGHTS, &mut restored_rng).unwrap();
            assert_eq!((&found, &running, &rng), (&again, &restored, &restored_rng), "{utility:?}");
        }
    }
}

#[test]
fn only_a_stateful_utility_depends_on_the_rounds_before() {
    for utility in UTILITIES {
        let mut running = measurement(utility);
        assert_eq!(running.is_stateful(), utility == Utility::Direction);
        let (first, second) = (round(1), round(2));
        running.measure(&slices(&first), &WEIGHTS, &mut ChaCha8Rng::seed_from_u64(7)).unwrap();
        assert_eq!(running == measurement(utility), !running.is_stateful());
        let found = running.measure(&slices(&second), &WEIGHTS, &mut ChaCha8Rng::seed_from_u64(8)).unwrap();
        let alone =
            contributions(&slices(&second), &WEIGHTS, running.config(), &mut ChaCha8Rng::seed_from_u64(8))
                .unwrap();
        assert_eq!(found == alone, !running.is_stateful(), "{utility:?}");
    }
}

#[test]
fn an_error_changes_neither_state_nor_generator() {
    for utility in UTILITIES {
        let (mut running, mut rng) = (measurement(utility), ChaCha8Rng::seed_from_u64(1));
        running.measure(&slices(&round(1)), &WEIGHTS, &mut rng).unwrap();
        let before = (running.clone(), rng.clone());
        let mut broken = round(2);
        broken[3][7] = f32::NAN;
        running.measure(&slices(&broken), &WEIGHTS, &mut rng).unwrap_err();
        assert_eq!((running, rng), before, "{utility:?}");
    }
}

#[test]
fn a_state_fits_its_own_utility_and_dimension() {
    let mut running = measurement(Utility::Direction);
    assert!(running.fits(30) && running.fits(31), "empty before the first round");
    running.measure(&slices(&round(1)), &WEIGHTS, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
    assert!(running.fits(30) && !running.fits(31));
    let direction = UtilityState::Direction(DirectionEma::new(vec![1.0]));
    let cosine = ContributionConfig::default();
    assert_eq!(Measurement::with_state(cosine, direction), Err(FairnessError::OtherUtility));
    let mut saved = serde_json::to_value(measurement(Utility::Cosine)).unwrap();
    saved["config"]["utility"] = "projection".into();
    assert!(!serde_json::from_value::<Measurement>(saved).unwrap().fits(30));
}

#[test]
fn only_enumeration_limits_the_nodes_of_a_round() {
    for utility in UTILITIES {
        for estimator in [Estimator::Exact, Estimator::Permutation] {
            let limit =
                ContributionConfig { utility, estimator, ..ContributionConfig::default() }.nodes_max();
            let enumerates = utility == Utility::Cosine && estimator == Estimator::Exact;
            assert_eq!(limit, enumerates.then_some(20), "{utility:?} {estimator:?}");
        }
    }
}
