//! Effects of corruptions on samples, batches and nodes.

use std::sync::Arc;

use evenhand_models::Targets;
use evenhand_node::reading::{LabelledRow, RowTarget};

use super::{beside, config, share, stream, values};
use crate::data::power_law::power_law_parts;
use crate::data::{self, AsPublished, SamplePool, SampleTargets};
use crate::scenario::*;

#[test]
fn a_share_zeta_of_the_samples_is_noisy() {
    for as_published in [AsPublished::Paper, AsPublished::Code] {
        let stream = stream(&config(Corruption::FeatureNoise, as_published));
        for (node, zeta) in stream.zetas().iter().enumerate() {
            let pairs = beside(&stream, node);
            let noisy = share(&pairs, |(clean, seen)| clean.features != seen.features);
            // 600 samples: three standard deviations are at most 0.061; the published code is exact.
            let slack = if as_published == AsPublished::Code { 1.0 / 600.0 } else { 0.062 };
            assert!((noisy - zeta).abs() <= slack, "{as_published:?} node {node}: {noisy} for ζ = {zeta}");
            assert!(pairs.iter().all(|(clean, seen)| clean.target == seen.target));
        }
    }
}

#[test]
fn noise_has_the_deviation_of_the_paper_or_of_the_code() {
    for (as_published, expected) in [(AsPublished::Paper, 1.0), (AsPublished::Code, 1.2)] {
        let stream = stream(&config(Corruption::FeatureNoise, as_published));
        let pairs = beside(&stream, 9);
        let noise =
            pairs.iter().filter(|(clean, seen)| clean.features != seen.features).flat_map(|(clean, seen)| {
                clean
                    .features
                    .iter()
                    .zip(&seen.features)
                    .map(|(clean, seen)| f64::from(seen - clean))
                    .collect::<Vec<_>>()
            });
        let (count, sum, squares) = noise.fold((0.0, 0.0, 0.0), |(count, sum, squares), noise| {
            (count + 1.0, sum + noise, squares + noise * noise)
        });
        let (mean, deviation): (f64, f64) = (sum / count, f64::sqrt(squares / count));
        assert!(
            count > 50_000.0 && mean.abs() < 0.02 && (deviation - expected).abs() < 0.02,
            "{mean} {deviation}"
        );
    }
}

#[test]
fn zeta_reaches_the_level_in_the_paper_and_stops_short_of_it_in_the_code() {
    let of = |as_published| stream(&config(Corruption::LabelNoise, as_published)).zetas().to_vec();
    let paper = of(AsPublished::Paper);
    assert_eq!((paper[0], paper[9]), (0.0, 0.2));
    let code = of(AsPublished::Code);
    assert!((code[9] - 0.18).abs() < 1e-12 && code.is_sorted(), "{code:?}");
}

#[test]
fn labels_change_at_the_rate_zeta_and_less_where_they_may_stay() {
    let wrong = |as_published| {
        let config = ScenarioConfig { level: 0.8, ..config(Corruption::LabelNoise, as_published) };
        let pairs = beside(&stream(&config), 9);
        assert!(pairs.iter().all(|(clean, seen)| clean.features == seen.features));
        share(&pairs, |(clean, seen)| clean.target != seen.target)
    };
    let paper = wrong(AsPublished::Paper);
    assert!((paper - 0.8).abs() < 0.05, "{paper}");
    // ζ is 0.72, and one of the three classes is its own.
    let code = wrong(AsPublished::Code);
    assert!((code - 0.48).abs() < 0.062, "{code}");
}

#[test]
fn values_are_negated() {
    let of = |corruption, as_published| {
        let config = ScenarioConfig { level: 1.0, ..config(corruption, as_published) };
        beside(&SampleStream::new(Arc::new(values(6000)), &config).unwrap(), 9)
    };
    for (clean, seen) in of(Corruption::LabelNoise, AsPublished::Paper) {
        let (RowTarget::Value(clean), RowTarget::Value(seen)) = (clean.target, seen.target) else {
            panic!("classes")
        };
        assert_eq!(seen, -clean);
    }
    let negated = share(&of(Corruption::FeatureNoise, AsPublished::Code), |(clean, seen)| {
        seen.features[0] == -clean.features[0]
    });
    assert!((negated - 0.9).abs() < 0.01, "{negated}");
}

#[test]
fn half_of_the_features_of_a_share_zeta_are_missing() {
    let stream = stream(&config(Corruption::MissingValues, AsPublished::Paper));
    let pairs = beside(&stream, 9);
    let zeros =
        |row: &LabelledRow| row.features.iter().filter(|feature| **feature == 0.0).count() as f64 / 144.0;
    let hit: Vec<f64> = pairs.iter().map(|(_, seen)| zeros(seen)).filter(|zeros| *zeros > 0.0).collect();
    assert!((hit.len() as f64 / 600.0 - 0.9).abs() < 0.04, "{}", hit.len());
    assert!((hit.iter().sum::<f64>() / hit.len() as f64 - 0.5).abs() < 0.01);
}

#[test]
fn batches_follow_the_power_law_and_the_one_with_most_is_the_best() {
    let stream = stream(&ScenarioConfig { nodes: 30, ..config(Corruption::Quantity, AsPublished::Paper) });
    let sizes: Vec<usize> = (0..30).map(|node| stream.batch(node)).collect();
    assert!(sizes.is_sorted() && sizes.iter().sum::<usize>() == 180, "{sizes:?}");
    // q^(1/1.659…) at 0.3 and 0.99 is 0.484 and 0.994; their mean 0.739 stands for 6 samples.
    assert_eq!((sizes[0], sizes[29]), (4, 8), "{sizes:?}");
    assert!(stream.zetas().is_sorted_by(|a, b| a >= b), "{:?}", stream.zetas());
    assert!((stream.zetas().iter().sum::<f64>() + 1.0).abs() < 1e-12);
}

#[test]
fn the_published_power_law_runs_out_of_samples() {
    // Rounded up, the batches of a step of 90 samples sum up to more than 90.
    let parts = power_law_parts(90, 30, 1.0);
    assert_eq!(parts[0], 1..3, "1.97 samples, rounded up, from the second on");
    let used: usize = parts.iter().filter(|part| part.start > 0).map(|part| part.len()).sum();
    assert_eq!(used, 89, "each but the first, once");
    assert_eq!(parts[29], 0..1);
    assert!(parts.iter().all(|part| !part.is_empty() && part.end <= 90));
}

#[test]
fn nodes_see_from_all_classes_down_to_two() {
    let config =
        ScenarioConfig { rounds: 20, batch: 30, ..config(Corruption::Heterogeneity, AsPublished::Paper) };
    let mut pool = data::load(config.dataset, None, &config.data_request()).unwrap();
    let of: Vec<u32> = (0..10).cycle().take(pool.len()).collect();
    pool.targets = SampleTargets::Classes { of, count: 10 };
    let stream = SampleStream::new(Arc::new(pool), &config).unwrap();
    let counts: Vec<usize> = (0..10)
        .map(|node| {
            let rows = (1..=21).flat_map(|round| stream.rows(node, round));
            let mut classes: Vec<u32> =
                rows.map(|row| if let RowTarget::Class(class) = row.target { class } else { 99 }).collect();
            classes.sort_unstable();
            classes.dedup();
            classes.len()
        })
        .collect();
    assert_eq!(counts, [10, 9, 8, 7, 6, 6, 5, 4, 3, 2]);
    assert!(
        (stream.zetas()[9] - 0.8).abs() < 1e-12 && stream.zetas()[0] == 0.0 && stream.zetas().is_sorted()
    );
    let Targets::Classes(mut scored) = stream.clean(3).batch.targets else { panic!("values") };
    assert_eq!(scored.len(), 300);
    scored.sort_unstable();
    scored.dedup();
    assert_eq!(scored.len(), 10, "models are scored on all classes");
}

#[test]
fn noise_grows_on_one_node_and_fades_on_another() {
    let config = ScenarioConfig { level: 0.8, ..config(Corruption::NonStationary, AsPublished::Paper) };
    let stream = stream(&config);
    let wrong = |node: usize, rounds: std::ops::RangeInclusive<u32>| {
        let pairs: Vec<_> = rounds
            .flat_map(|round| {
                let clean = stream.measured.of(node, round).iter().map(|at| stream.row(*at as usize));
                clean.zip(stream.rows(node, round)).collect::<Vec<_>>()
            })
            .collect();
        share(&pairs, |(clean, seen)| clean.target != seen.target)
    };
    assert_eq!((wrong(0, 1..=1), wrong(9, 51..=100)), (0.0, 0.0));
    // 60 samples: three standard deviations are 0.16 at 0.8·0.1 or 0.9.
    assert!(wrong(0, 1..=10) < 0.24 && (wrong(0, 51..=100) - 0.8).abs() < 0.07);
    assert!(wrong(9, 1..=10) > 0.56);
    assert_eq!((stream.zetas()[0], stream.zetas()[9]), (0.8, 0.0));
    assert!((wrong(5, 1..=100) - stream.zetas()[5]).abs() < 0.062);
}

#[test]
fn nodes_are_away_silent_or_stop_as_configured() {
    let unstable = stream(&config(Corruption::Unstable, AsPublished::Paper));
    for (node, zeta) in unstable.zetas().iter().enumerate() {
        let away = (1..=2000).filter(|round| unstable.behaviour(node).is_away(7, node, *round)).count();
        assert!((away as f64 / 2000.0 - zeta).abs() < 0.034, "node {node} away {away} for ζ = {zeta}");
        assert!(!unstable.behaviour(node).is_silent(7, node, 1, Some(1)));
    }
    let random = stream(&config(Corruption::StrategicRandom, AsPublished::Paper));
    let silent = (1..=2000).filter(|round| random.behaviour(3).is_silent(7, 3, *round, Some(*round))).count();
    assert!((silent as f64 / 2000.0 - 0.5).abs() < 0.034, "{silent}");
    assert!(
        (1..=200).all(|round| !random.behaviour(3).is_silent(7, 3, round, None)),
        "all contribute while exploring"
    );

    let poisson = stream(&ScenarioConfig {
        nodes: 400,
        rounds: 1,
        ..config(Corruption::StrategicPoisson, AsPublished::Paper)
    });
    let stops: Vec<u32> = (0..400)
        .map(|node| match poisson.behaviour(node) {
            NodeBehaviour::StopsAfter { exploiting_rounds } => exploiting_rounds,
            other => panic!("{other:?}"),
        })
        .collect();
    let mean = f64::from(stops.iter().sum::<u32>()) / 400.0;
    assert!((mean - 20.0).abs() < 0.68, "{mean}");
    let behaviour = NodeBehaviour::StopsAfter { exploiting_rounds: 20 };
    assert!(!behaviour.is_silent(7, 0, 90, Some(20)) && behaviour.is_silent(7, 0, 91, Some(21)));
    assert!(!behaviour.is_silent(7, 0, 91, None));
}

#[test]
fn at_level_0_all_data_are_alike_and_compared_with_the_zeta_of_the_default_level() {
    let corruptions = [Corruption::FeatureNoise, Corruption::Quantity, Corruption::Heterogeneity];
    for (corruption, as_published) in
        corruptions.into_iter().flat_map(|one| [(one, AsPublished::Paper), (one, AsPublished::Code)])
    {
        let usual = config(corruption, as_published);
        let control = stream(&ScenarioConfig { level: 0.0, ..usual });
        assert_eq!(control.nominal_zetas(), stream(&usual).zetas(), "{corruption:?}");
        assert!(control.zetas().iter().all(|zeta| zeta == &control.zetas()[0]), "{:?}", control.zetas());
        let distinct: std::collections::BTreeSet<u64> =
            control.nominal_zetas().iter().map(|zeta| zeta.to_bits()).collect();
        assert!(distinct.len() > 1, "{corruption:?}");
        for node in 0..10 {
            assert_eq!(share(&beside(&control, node), |(clean, seen)| clean != seen), 0.0);
        }
    }
}

/// Two steps of a series, with the load first and four phases after it.
fn series(samples: usize) -> SamplePool {
    let sample = |number: usize| {
        let phases = [0.6, 0.8, 0.5, 0.1];
        [number as f32, number as f32 + 0.5].map(|load| [&[load][..], &phases[..]].concat()).concat()
    };
    SamplePool { shape: vec![2, 5], features: (1..=samples).flat_map(sample).collect(), ..values(samples) }
}

#[test]
fn meters_have_wrong_clocks_get_stuck_and_make_up_readings() {
    let corrupted = |corruption| {
        let config = ScenarioConfig { level: 1.0, nodes: 2, ..config(corruption, AsPublished::Paper) };
        let stream = SampleStream::new(Arc::new(series(2000)), &config).unwrap();
        let first = beside(&stream, 0);
        assert_eq!(share(&first, |(clean, seen)| clean != seen), 0.0, "ζ of node 0 is 0");
        beside(&stream, 1)
    };
    for (clean, seen) in corrupted(Corruption::ShiftedClock) {
        assert_eq!(seen.target, clean.target);
        assert_eq!(seen.features[5..], [clean.features[5], -0.6, -0.8, 0.5, 0.1]);
    }
    for (clean, seen) in corrupted(Corruption::StuckMeter) {
        assert_eq!(seen.target, RowTarget::Value(clean.features[0]));
        assert_eq!(seen.features[5..], [clean.features[0], 0.6, 0.8, 0.5, 0.1]);
    }
    let made_up = corrupted(Corruption::MadeUp);
    assert_eq!(share(&made_up, |(clean, seen)| clean.target != seen.target), 1.0);
    assert!(made_up.iter().all(|(_, seen)| seen.features[6..] == [0.6, 0.8, 0.5, 0.1]));
    let sum: f32 = made_up.iter().map(|(_, seen)| seen.features[5]).sum();
    assert!((sum / made_up.len() as f32).abs() < 0.2, "drawn around 0");
    let refused = ScenarioConfig { ..config(Corruption::StuckMeter, AsPublished::Paper) };
    let error = SampleStream::new(Arc::new(values(2000)), &refused).unwrap_err();
    assert!(error.to_string().contains("no series of readings"), "{error}");
}
