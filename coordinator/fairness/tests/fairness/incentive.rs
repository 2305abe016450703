//! Probabilities, staleness and temperatures.

use super::{assert_close, close};
use evenhand_fairness::{
    FairnessError, expected_staleness, inclusion_probabilities, mean_staleness, sampling_probabilities,
    selection_probability, temperature_for_band, temperature_for_worst_staleness, temperature_for_worst_wait,
};
use proptest::prelude::*;

const LINEAR: [f64; 10] = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1];

fn staleness(standings: &[f64], temperature: f64, k: u32) -> Vec<f64> {
    sampling_probabilities(standings, temperature).into_iter().map(|p| expected_staleness(p, k)).collect()
}

#[test]
fn a_low_temperature_leaves_the_best_only() {
    assert_eq!(sampling_probabilities(&[1.0, 3.0, 2.0, 3.0], 1e-6), [0.0, 0.5, 0.0, 0.5]);
    assert_eq!(sampling_probabilities(&[-1e300, 1e300], 1e-6), [0.0, 1.0]);
}

#[test]
fn a_high_temperature_makes_all_equal() {
    assert_close(&sampling_probabilities(&LINEAR, 1e6), &[0.1; 10], 1e-6);
}

#[test]
fn certain_and_impossible_draws_have_their_staleness() {
    assert_eq!(
        [selection_probability(1.0, 3), expected_staleness(1.0, 3), mean_staleness(1.0, 3)],
        [1.0, 0.0, 0.0]
    );
    assert_eq!(
        [selection_probability(0.0, 3), expected_staleness(0.0, 3), mean_staleness(0.0, 3)],
        [0.0, f64::INFINITY, f64::INFINITY]
    );
    assert_eq!(selection_probability(0.5, 0), 0.0);
    // 1 − (1 − ϱ)ᵏ would be 0 here.
    assert!(close(selection_probability(1e-20, 4), 4e-20, 1e-12));
}

/// Γ sums γ·(1−q)^γ over γ; the mean of the geometric law weighs each by q as well.
#[test]
fn both_kinds_of_staleness_are_the_sums_they_say() {
    for q in [0.03, 0.2, 0.9] {
        let sum: f64 = (1..5000).map(|age| f64::from(age) * (1.0f64 - q).powi(age)).sum();
        assert!(close(expected_staleness(q, 1), sum, 1e-9));
        assert!(close(mean_staleness(q, 1), q * sum, 1e-9));
    }
}

proptest! {
    #[test]
    fn probabilities_are_probabilities_at_any_scale(
        standings in prop::collection::vec(prop_oneof![-1e300..1e300f64, -1.0..1.0f64, -1e-300..1e-300f64], 1..40),
        exponent in -6.0..6.0f64,
    ) {
        let probabilities = sampling_probabilities(&standings, 10f64.powf(exponent));
        prop_assert!(probabilities.iter().all(|p| (0.0..=1.0).contains(p)), "{probabilities:?}");
        prop_assert!(close(probabilities.iter().sum(), 1.0, 1e-12));
    }

    // The paper's Proposition, for differences that double precision can tell.

    #[test]
    fn symmetry(mut standings in any_standings(), beta in any_temperature(), k in 1u32..20) {
        standings[1] = standings[0];
        let staleness = staleness(&standings, beta, k);
        prop_assert_eq!(staleness[0], staleness[1]);
    }

    #[test]
    fn strict_desirability(mut standings in any_standings(), beta in any_temperature(), k in 1u32..20, more in 1e-6..1.0f64) {
        standings[1] = standings[0] + more;
        let staleness = staleness(&standings, beta, k);
        prop_assert!(staleness[1] < staleness[0]);
    }

    #[test]
    fn strict_monotonicity(mut standings in any_standings(), beta in any_temperature(), k in 1u32..20, more in 1e-6..1.0f64) {
        let before = staleness(&standings, beta, k)[0];
        standings[0] += more;
        prop_assert!(staleness(&standings, beta, k)[0] < before);
    }

    #[test]
    fn the_temperature_found_keeps_the_worst_staleness(standings in any_standings(), k in 1u32..20, factor in 1.01..1e6f64) {
        prop_assume!(standings.iter().any(|standing| (standing - standings[0]).abs() > 1e-3));
        let wanted = factor * expected_staleness(1.0 / standings.len() as f64, k);
        let temperature = temperature_for_worst_staleness(&standings, k, wanted).unwrap();
        let worst = staleness(&standings, temperature, k).into_iter().fold(0.0, f64::max);
        prop_assert!(close(worst, wanted, 1e-9), "{worst} for {wanted}");
    }

    #[test]
    fn the_temperatures_of_a_band_keep_it_up_to_their_ends(standings in prop::collection::vec(0.1..1.0f64, 2..12), k in 1u32..10, beta in 0.1..10.0f64, room in 1.01..2.0f64) {
        // A band around the products at some temperature is reachable by construction.
        let products = |beta: f64| -> Vec<f64> {
            staleness(&standings, beta, k).iter().zip(&standings).map(|(gamma, psi)| gamma * psi).collect()
        };
        let least = products(beta).into_iter().fold(f64::INFINITY, f64::min);
        let most = products(beta).into_iter().fold(0.0, f64::max);
        let band = (least / room, most * room);
        let found = temperature_for_band(&standings, k, band).unwrap();
        let within = |beta: f64| products(beta).iter().all(|product| band.0 <= *product && *product <= band.1);
        prop_assert!(found.low <= found.best && found.best <= found.high);
        prop_assert!(within(found.best));
        if found.low > 0.0 {
            prop_assert!(within(found.low) && !within(found.low * (1.0 - 1e-9)), "{found:?}");
        }
        if found.high.is_finite() {
            prop_assert!(within(found.high) && !within(found.high * (1.0 + 1e-9)), "{found:?}");
        }
    }
}

fn any_standings() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-1.0..1.0f64, 2..30)
}

fn any_temperature() -> impl Strategy<Value = f64> {
    (-1.0..2.0f64).prop_map(|exponent| 10f64.powf(exponent))
}

#[test]
fn unreachable_demands_say_what_is_possible() {
    let error = temperature_for_worst_staleness(&LINEAR, 4, 5.0).unwrap_err().to_string();
    let equal = expected_staleness(0.1, 4);
    assert_eq!(
        error,
        format!(
            "worst_staleness = 5 is out of reach: even equal probabilities leave {equal} with k = 4 of 10 nodes; \
             ask for more than that, or raise k"
        )
    );
    let error = temperature_for_worst_staleness(&[0.2; 5], 2, 9.0).unwrap_err().to_string();
    assert!(error.contains("all standings are equal, so it is 4.938271604938"), "{error}");
    let Err(FairnessError::Unreachable { demand, reachable }) = temperature_for_band(&LINEAR, 4, (0.3, 0.31))
    else {
        panic!("no temperature keeps so narrow a band");
    };
    assert_eq!(demand, "band = [0.3, 0.31]");
    assert!(reachable.starts_with("nearest to it is ["), "{reachable}");
}

#[test]
fn a_band_may_be_kept_at_every_temperature_above_some() {
    let found = temperature_for_band(&LINEAR, 4, (0.0, 2.0)).unwrap();
    assert_eq!(found.high, f64::INFINITY);
    let most = |beta: f64| {
        staleness(&LINEAR, beta, 4).iter().zip(LINEAR).map(|(gamma, psi)| gamma * psi).fold(0.0, f64::max)
    };
    assert!(close(most(found.low), 2.0, 1e-9));
}

#[test]
fn a_band_of_equal_standings_holds_at_all_temperatures_or_none() {
    let product = 0.2 * expected_staleness(0.2, 2);
    let found = temperature_for_band(&[0.2; 5], 2, (0.9 * product, 1.1 * product)).unwrap();
    assert_eq!((found.low, found.high), (0.0, f64::INFINITY));
    assert!(temperature_for_band(&[0.2; 5], 2, (1.1 * product, 1.2 * product)).is_err());
}

/// Three times the wait under equal odds, whatever N and however standings lie.
#[test]
fn the_promised_wait_is_kept_by_three_nodes_and_by_ten_thousand() {
    type Shape = fn(f64) -> f64;
    let shapes: [(&str, Shape); 3] = [
        ("even", |share| share),
        ("one far below", |share| f64::from(share > 0.0)),
        ("close", |share| 1e-9 * share),
    ];
    for (nodes, k) in [(3, 1), (4, 1), (12, 4), (100, 40), (1_000, 4), (10_000, 400)] {
        for (shape, standing) in shapes {
            let standings: Vec<f64> =
                (0..nodes).map(|node| standing(f64::from(node) / f64::from(nodes))).collect();
            let promised = 3.0 * f64::from(nodes) / k as f64;
            let temperature = temperature_for_worst_wait(&standings, k, promised).unwrap();
            let odds = inclusion_probabilities(&sampling_probabilities(&standings, temperature), k);
            let longest = odds.iter().map(|odds| 1.0 / odds).fold(0.0, f64::max);
            assert!(close(longest, promised, 1e-6), "{shape}, N = {nodes}, k = {k}: {longest} of {promised}");
            assert!(close(odds.iter().sum(), k as f64, 1e-6), "{shape}, N = {nodes}: k are drawn");
        }
    }
}

#[test]
fn invalid_inputs_are_named() {
    let of = |standings: &[f64], k, wanted| {
        temperature_for_worst_staleness(standings, k, wanted).unwrap_err().to_string()
    };
    assert_eq!(of(&[], 1, 9.0), "standings is empty");
    assert_eq!(of(&[1.0, f64::NAN], 1, 9.0), "standings[1] is not finite");
    assert_eq!(of(&[1.0, 2.0], 0, 9.0), "k = 0 must be at least 1");
    assert_eq!(of(&[1.0, 2.0], 1, f64::NAN), "worst_staleness is not finite");
    let error = temperature_for_band(&[1.0, 2.0], 1, (2.0, 1.0)).unwrap_err().to_string();
    assert_eq!(error, "band[0] = 2 must be a number that is at most band[1]");
}
