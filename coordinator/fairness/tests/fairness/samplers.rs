//! Samplers: draws and waiting times.

use super::staleness::StalenessTracker;
use evenhand_fairness::{
    Sampler, SamplerKind, inclusion_probabilities, mean_staleness, measures::pearson, sampling_probabilities,
    selection_probability, wait_bound,
};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;

const KINDS: [SamplerKind; 3] =
    [SamplerKind::WithReplacement, SamplerKind::WithoutReplacement, SamplerKind::Credit];

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// The share of rounds in which each node is drawn, and its staleness.
fn run(
    kind: SamplerKind,
    probabilities: &[f64],
    k: usize,
    rounds: usize,
    seed: u64,
) -> (Vec<f64>, StalenessTracker) {
    let (mut sampler, mut rng, mut staleness) =
        (Sampler::new(kind), rng(seed), StalenessTracker::new(probabilities.len()));
    for _ in 0..rounds {
        staleness.observe(&sampler.draw(probabilities, k, &mut rng));
    }
    (staleness.draws().iter().map(|draws| *draws as f64 / rounds as f64).collect(), staleness)
}

/// Frequencies within four standard deviations of their probabilities.
#[track_caller]
fn assert_frequencies(found: &[f64], wanted: &[f64], rounds: usize) {
    for (i, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        let deviation = (wanted * (1.0 - wanted) / rounds as f64).sqrt();
        assert!(
            (found - wanted).abs() <= 4.0 * deviation + 1e-12,
            "node {i}: {found}, not {wanted} ± {deviation}"
        );
    }
}

#[derive(Deserialize)]
struct InclusionCases {
    cases: Vec<InclusionCase>,
}

#[derive(Deserialize)]
struct InclusionCase {
    rho: Vec<f64>,
    k: usize,
    inclusion_without_replacement: Vec<f64>,
    q_with_replacement: Vec<f64>,
}

#[test]
fn a_node_without_a_probability_is_never_drawn() {
    for kind in KINDS {
        let mut rng = rng(3);
        let mut sampler = Sampler::new(kind);
        assert!(sampler.draw(&[0.0, 0.0, 0.0], 2, &mut rng).is_empty(), "{kind:?}");
        assert!(sampler.draw_among(&[0.5, 0.5], &[], 1, &mut rng).is_empty(), "{kind:?}");
        for _ in 0..200 {
            assert_eq!(sampler.draw(&[0.0, 1.0, 0.0], 2, &mut rng), [1], "{kind:?}");
        }
    }
}

#[test]
fn inclusion_is_as_enumerated_with_and_without_replacement() {
    let golden: InclusionCases =
        serde_json::from_str(include_str!("../golden/c2_inclusion_without_replacement.json")).unwrap();
    assert!(golden.cases.len() >= 3);
    let rounds = 40_000;
    for case in golden.cases {
        let (with, _) = run(SamplerKind::WithReplacement, &case.rho, case.k, rounds, 1);
        assert_frequencies(&with, &case.q_with_replacement, rounds);
        let (without, _) = run(SamplerKind::WithoutReplacement, &case.rho, case.k, rounds, 2);
        assert_frequencies(&without, &case.inclusion_without_replacement, rounds);
    }
}

#[test]
fn the_true_mean_staleness_is_that_of_the_geometric_law() {
    let (probabilities, k, rounds) = ([0.05, 0.15, 0.3, 0.5], 2, 100_000);
    let (_, staleness) = run(SamplerKind::WithReplacement, &probabilities, k, rounds, 3);
    for (found, probability) in staleness.mean().iter().zip(probabilities) {
        let wanted = mean_staleness(probability, k as u32);
        assert!((found / wanted - 1.0).abs() < 0.05, "{found}, not {wanted}");
    }
}

#[test]
fn credit_gives_each_node_its_inclusion_probability() {
    let probabilities = sampling_probabilities(&[0.1, 0.5, 0.3, 0.9, 0.2, 0.4], 0.3);
    let (rounds, k) = (1000, 3);
    let (found, _) = run(SamplerKind::Credit, &probabilities, k, rounds, 4);
    let wanted = inclusion_probabilities(&probabilities, k);
    assert!((wanted.iter().sum::<f64>() - 3.0).abs() < 1e-12);
    for (found, wanted) in found.iter().zip(wanted) {
        // Credits are bounded, so the error of the share falls with the rounds, not with their root.
        assert!((found - wanted).abs() <= wait_bound(6, k) / rounds as f64, "{found}, not {wanted}");
    }
}

#[test]
fn inclusion_probabilities_are_capped_at_one() {
    assert_eq!(inclusion_probabilities(&[0.9, 0.05, 0.05], 2), [1.0, 0.5, 0.5]);
    assert_eq!(inclusion_probabilities(&[0.25; 4], 2), [0.5; 4]);
    assert_eq!(inclusion_probabilities(&[0.5, 0.3, 0.2], 3), [1.0; 3]);
    assert_eq!(inclusion_probabilities(&[1.0, 0.0, 0.0], 2), [1.0, 0.0, 0.0]);
    let tiny = inclusion_probabilities(&[1.0, 1e-300, 3e-300], 2);
    assert_eq!(tiny[0], 1.0);
    assert!((tiny[1] - 0.25).abs() < 1e-12 && (tiny[2] - 0.75).abs() < 1e-12);
}

/// The design's case: 30 nodes, 12 a round, 100 rounds; standings grow with quality.
#[test]
fn credit_leaves_hardly_anything_to_luck() {
    let quality: Vec<f64> = (0..30).map(|i| f64::from(i) / 29.0).collect();
    let standings: Vec<f64> = quality.iter().map(|quality| 0.024 + 0.018 * quality).collect();
    let probabilities = sampling_probabilities(&standings, 1.0 / 150.0);
    let mean_over_seeds = |kind| {
        let of = |seed| {
            let (_, staleness) = run(kind, &probabilities, 12, 100, seed);
            let longest = *staleness.longest().iter().max().unwrap() as f64;
            (-pearson(&quality, &staleness.mean()).unwrap(), longest)
        };
        let runs: Vec<(f64, f64)> = (0..50).map(of).collect();
        let mean = |f: fn(&(f64, f64)) -> f64| runs.iter().map(f).sum::<f64>() / 50.0;
        (mean(|run| run.0), mean(|run| run.1))
    };
    let (lucky, credit) =
        (mean_over_seeds(SamplerKind::WithReplacement), mean_over_seeds(SamplerKind::Credit));
    println!(
        "correlation of quality and staleness, longest wait: with replacement {lucky:?}, credit {credit:?}"
    );
    assert!(credit.0 > lucky.0 + 0.05, "{} against {}", credit.0, lucky.0);
    assert!(credit.1 < 0.5 * lucky.1, "{} against {}", credit.1, lucky.1);
}

#[test]
fn a_saved_sampler_goes_on_as_if_nothing_had_happened() {
    for kind in KINDS {
        let (mut sampler, mut rng) = (Sampler::new(kind), rng(5));
        let probabilities = [0.4, 0.3, 0.2, 0.1];
        (0..7).for_each(|_| drop(sampler.draw(&probabilities, 2, &mut rng)));
        let saved = serde_json::to_string(&(&sampler, &rng)).unwrap();
        let (mut sampler2, mut rng2): (Sampler, ChaCha8Rng) = serde_json::from_str(&saved).unwrap();
        for _ in 0..20 {
            assert_eq!(
                sampler.draw(&probabilities, 2, &mut rng),
                sampler2.draw(&probabilities, 2, &mut rng2)
            );
        }
    }
}

#[test]
fn a_newcomer_joins_the_credit_draw() {
    let (mut sampler, mut rng) = (Sampler::new(SamplerKind::Credit), rng(6));
    (0..10).for_each(|_| drop(sampler.draw(&[0.5, 0.5], 1, &mut rng)));
    let drawn: Vec<usize> = (0..9).flat_map(|_| sampler.draw(&[0.25, 0.25, 0.5], 1, &mut rng)).collect();
    assert!((3..=6).contains(&drawn.iter().filter(|node| **node == 2).count()), "{drawn:?}");
}

fn any_probabilities() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(prop_oneof![0.001..1.0f64, 0.5..1.0f64], 2..20).prop_map(|weights| {
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / sum).collect()
    })
}

proptest! {
    #[test]
    fn draws_are_distinct_sorted_and_as_many_as_asked(probabilities in any_probabilities(), k in 1usize..25, seed: u64) {
        for kind in KINDS {
            let drawn = Sampler::new(kind).draw(&probabilities, k, &mut rng(seed));
            prop_assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(drawn.iter().all(|node| *node < probabilities.len()));
            let most = k.min(probabilities.len());
            let enough = match kind {
                SamplerKind::WithReplacement => (1..=most).contains(&drawn.len()),
                _ => drawn.len() == most,
            };
            prop_assert!(enough, "{kind:?} drew {drawn:?}");
        }
    }

    #[test]
    fn a_node_without_probability_is_never_drawn(mut probabilities in any_probabilities(), k in 1usize..25, seed: u64) {
        probabilities[0] = 0.0;
        for kind in KINDS {
            let (mut sampler, mut rng) = (Sampler::new(kind), rng(seed));
            for _ in 0..20 {
                prop_assert!(!sampler.draw(&probabilities, k, &mut rng).contains(&0));
            }
        }
    }

    #[test]
    fn no_wait_of_the_credit_sampler_exceeds_the_bound(probabilities in any_probabilities(), k in 1usize..19, seed: u64) {
        let nodes = probabilities.len();
        prop_assume!(k < nodes);
        let inclusion = inclusion_probabilities(&probabilities, k);
        let (_, staleness) = run(SamplerKind::Credit, &probabilities, k, 600, seed);
        for (longest, inclusion) in staleness.longest().iter().zip(inclusion) {
            prop_assert!(*longest as f64 * inclusion <= wait_bound(nodes, k) + 1e-9);
            // What is simulated, well below what is proven.
            prop_assert!(*longest as f64 * inclusion <= 2.0);
        }
    }

    #[test]
    fn the_bound_holds_for_what_is_owed_when_probabilities_change(nodes in 2usize..12, seed: u64) {
        let mut rng = rng(seed);
        let k = rng.random_range(1..nodes);
        let (mut sampler, mut owed) = (Sampler::new(SamplerKind::Credit), vec![0.0; nodes]);
        for _ in 0..300 {
            let weights: Vec<f64> = (0..nodes).map(|_| rng.random::<f64>().powi(3) + 1e-3).collect();
            let sum: f64 = weights.iter().sum();
            let probabilities: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
            for (owed, inclusion) in owed.iter_mut().zip(inclusion_probabilities(&probabilities, k)) {
                *owed += inclusion;
            }
            sampler.draw(&probabilities, k, &mut rng).iter().for_each(|&node| owed[node] = 0.0);
            prop_assert!(owed.iter().all(|owed| *owed <= wait_bound(nodes, k) + 1e-9), "{owed:?}");
        }
    }
}

#[test]
fn selection_with_replacement_is_that_of_the_paper() {
    let (probabilities, k, rounds) = ([0.1, 0.2, 0.3, 0.4], 3, 40_000);
    let (found, _) = run(SamplerKind::WithReplacement, &probabilities, k, rounds, 7);
    assert_frequencies(&found, &probabilities.map(|p| selection_probability(p, k as u32)), rounds);
}
