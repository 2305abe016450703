//! Assignment of samples to nodes and steps.

use std::sync::Arc;

use evenhand_node::reading::LabelledRow;

use super::{beside, config, stream, values};
use crate::data::partition::split;
use crate::data::{self, AsPublished, Dataset, SamplePool, SampleTargets};
use crate::scenario::*;

#[test]
fn steps_are_cut_as_numpy_cuts() {
    let sizes = |length, parts| (0..parts).map(|at| split(length, parts, at).len()).collect::<Vec<_>>();
    assert_eq!(sizes(10, 3), [4, 3, 3]);
    assert_eq!(sizes(2, 4), [1, 1, 0, 0]);
    assert_eq!((split(10, 3, 0), split(10, 3, 1), split(10, 3, 2)), (0..4, 4..7, 7..10));
    let steps = sizes(60_000, 700);
    assert_eq!((steps.iter().filter(|size| **size == 86).count(), steps[499], steps[500]), (500, 86, 85));
}

#[test]
fn the_noisiest_nodes_of_the_published_mnist_split_get_two_samples() {
    let config = ScenarioConfig {
        dataset: Dataset::Mnist,
        nodes: 30,
        batch: 3,
        rounds: 130,
        ..config(Corruption::FeatureNoise, AsPublished::Code)
    };
    let mut pool = data::load(Dataset::Synthetic, None, &config.data_request()).unwrap();
    pool.recorded = 60_000;
    let stream = SampleStream::new(Arc::new(pool), &config).unwrap();
    let sizes: Vec<usize> = (0..30).map(|node| stream.rows(node, 1).len()).collect();
    assert_eq!(sizes, [vec![3; 26], vec![2; 4]].concat());
    assert_eq!(stream.measured.of(0, 1), [0, 1, 2], "in the order of the file");
    assert_eq!(stream.measured.of(0, 2), [86, 87, 88], "the next round is the next step");
    assert_eq!((stream.batch(0), stream.batch(29), stream.passes()), (3, 2, 1));
}

#[test]
fn what_a_node_sees_depends_on_nothing_but_seed_node_and_round() {
    for corruption in [Corruption::FeatureNoise, Corruption::LabelNoise, Corruption::Heterogeneity] {
        let config = config(corruption, AsPublished::Paper);
        let (one, other) = (stream(&config), stream(&config));
        let forwards: Vec<_> = (1..=20).map(|round| one.rows(8, round)).collect();
        let backwards: Vec<_> = (1..=20).rev().map(|round| other.rows(8, round)).collect();
        assert!(forwards.iter().eq(backwards.iter().rev()));
        let another = stream(&ScenarioConfig { seed: 8, ..config });
        assert_ne!(forwards[0], another.rows(8, 1));
    }
}

#[test]
fn noise_comes_from_the_seed_too() {
    let config = config(Corruption::FeatureNoise, AsPublished::Code);
    let pool = Arc::new(data::load(config.dataset, None, &config.data_request()).unwrap());
    let one = beside(&SampleStream::new(Arc::clone(&pool), &config).unwrap(), 9);
    let other = beside(&SampleStream::new(pool, &ScenarioConfig { seed: 8, ..config }).unwrap(), 9);
    let noise = one.iter().zip(&other).filter(|((clean, one), (same, other))| {
        assert_eq!(clean, same, "the code goes in the order of the file");
        one != clean && other != clean
    });
    let noise: Vec<_> = noise.collect();
    assert!(noise.len() > 300 && noise.iter().all(|((_, one), (_, other))| one != other));
}

#[test]
fn the_clean_union_is_what_all_nodes_would_see_without_noise() {
    let stream = stream(&config(Corruption::None, AsPublished::Paper));
    let clean = stream.clean(5);
    let rows: Vec<LabelledRow> = (0..10).flat_map(|node| stream.rows(node, 5)).collect();
    assert_eq!(clean.batch.shape, [60, 144]);
    assert_eq!(clean.batch.inputs, rows.iter().flat_map(|row| row.features.clone()).collect::<Vec<_>>());
    assert!(clean.scales.is_empty());
    let ahead = stream.clean(100);
    assert_eq!(ahead.batch.shape, [60, 144], "one round more than the run has");
    assert_eq!(stream.clean(101).batch.shape, [0, 144]);

    let valued =
        SampleStream::new(Arc::new(values(6000)), &config(Corruption::LabelNoise, AsPublished::Paper))
            .unwrap();
    assert_eq!(valued.clean(1).scales, vec![(10.0, 2.0); 60]);
}

#[test]
fn a_small_pool_is_gone_through_again_and_again() {
    let config = config(Corruption::None, AsPublished::Paper);
    let stream = SampleStream::new(Arc::new(values(100)), &config).unwrap();
    assert_eq!(stream.passes(), 60, "100 rounds of 60 samples");
    let seen = |node: usize, rounds: std::ops::RangeInclusive<u32>| -> Vec<f32> {
        rounds.flat_map(|round| stream.rows(node, round)).map(|row| row.features[0]).collect()
    };
    let sorted = |mut values: Vec<f32>| {
        values.sort_by(f32::total_cmp);
        values
    };
    let mut all = Vec::new();
    for node in 0..10 {
        let own = sorted(seen(node, 1..=5));
        assert!(own.chunks(3).all(|same| same[0] == same[2]), "30 of 10 samples, each once a pass: {own:?}");
        all.extend(own.into_iter().step_by(3));
    }
    let numbers: Vec<f32> = (1..=100).map(|number| number as f32).collect();
    assert_eq!(sorted(all.clone()), numbers, "every sample is some node's");
    assert_ne!(all, numbers, "shuffled");
}

#[test]
fn owners_keep_their_own_readings_in_the_order_of_time() {
    let mut pool = values(1200);
    pool.owners = Some((0..12).map(|owner| owner * 100..(owner + 1) * 100).collect());
    let config = config(Corruption::None, AsPublished::Paper);
    let stream = SampleStream::new(Arc::new(pool.clone()), &config).unwrap();
    let features = |round| stream.rows(3, round).iter().map(|row| row.features[0]).collect::<Vec<_>>();
    assert_eq!(features(1), [301.0, 302.0, 303.0, 304.0, 305.0, 306.0]);
    assert_eq!(features(17), [397.0, 398.0, 399.0, 400.0, 301.0, 302.0], "and begins again");
    assert_eq!(stream.passes(), 6);
    pool.owners = Some(vec![0..100; 9]);
    let refused = SampleStream::new(Arc::new(pool), &config).unwrap_err();
    assert_eq!(refused.to_string(), "10 nodes, but only 9 meters have enough readings; lower --nodes");
}

#[test]
fn what_cannot_be_is_refused() {
    let refusal = |config: &ScenarioConfig, pool: SamplePool| {
        SampleStream::new(Arc::new(pool), config).unwrap_err().to_string()
    };
    let plain = config(Corruption::FeatureNoise, AsPublished::Paper);
    let electricity = ScenarioConfig {
        dataset: Dataset::Electricity,
        ..config(Corruption::Heterogeneity, AsPublished::Paper)
    };
    assert_eq!(
        refusal(&electricity, values(10)),
        "electricity has no classes, which heterogeneity is about; choose another --corruption"
    );
    assert_eq!(
        refusal(&ScenarioConfig { level: 1.5, ..plain }, values(10)),
        "level 1.5; it lies between 0 and 1"
    );
    assert_eq!(
        refusal(&ScenarioConfig { level: f64::NAN, ..plain }, values(10)),
        "level NaN; it lies between 0 and 1"
    );
    assert_eq!(
        refusal(&ScenarioConfig { nodes: 0, ..plain }, values(10)),
        "0 nodes with batches of 6; both must be at least 1"
    );
    assert_eq!(refusal(&plain, values(0)), "synthetic has no samples");
    let digits =
        ScenarioConfig { dataset: Dataset::Mnist, ..config(Corruption::Heterogeneity, AsPublished::Paper) };
    let three = |recorded| SamplePool {
        targets: SampleTargets::Classes { of: vec![0, 1, 3], count: 10 },
        recorded,
        ..values(3)
    };
    assert_eq!(
        refusal(&digits, three(60_000)),
        "no sample of class 2 among 3 of mnist; heterogeneity needs some of each: \
         take more of its 60000, with more --rounds or a larger --batch"
    );
    assert_eq!(
        refusal(&digits, three(3)),
        "no sample of class 2 among 3 of mnist; heterogeneity needs some of each: \
         the files hold no more; get all of them from http://yann.lecun.com/exdb/mnist"
    );
}

#[test]
fn a_node_reads_round_by_round_until_the_end() {
    use evenhand_node::reading::InputBatch;
    use evenhand_node::source::{Source, SourceError};

    let stream = Arc::new(stream(&config(Corruption::FeatureNoise, AsPublished::Paper)));
    let mut source = NodeStream::new(stream.clone(), 4);
    assert_eq!(source.read(1).unwrap(), InputBatch::Rows(stream.rows(4, 1)));
    assert_eq!(source.read(2).unwrap(), InputBatch::Rows([stream.rows(4, 2), stream.rows(4, 3)].concat()));
    assert_eq!(source.read(1000).unwrap().len(), 97 * 6);
    assert!(matches!(source.read(1), Err(SourceError::Ended)));
}

#[test]
fn what_is_held_out_is_clean_and_measured_by_no_node_before() {
    for corruption in [Corruption::FeatureNoise, Corruption::Heterogeneity] {
        let stream = stream(&config(corruption, AsPublished::Paper));
        let held_out = stream.held_out(76).clean;
        let before: std::collections::BTreeSet<u32> =
            (1..=75).flat_map(|round| stream.measured.all(round)).copied().collect();
        let samples: Vec<Vec<f32>> = before.iter().map(|at| stream.row(*at as usize).features).collect();
        let width = stream.shape().iter().product();
        assert!(held_out.batch.samples() > 100, "{corruption:?}");
        for kept in held_out.batch.inputs.chunks_exact(width).take(50) {
            assert!(!samples.iter().any(|sample| sample == kept), "{corruption:?}");
        }
    }
    let all = stream(&config(Corruption::FeatureNoise, AsPublished::Paper));
    assert_eq!(
        all.held_out(76).clean.batch.samples(),
        25 * 60,
        "rounds 76 to 100 of 10 nodes with 6 samples"
    );
}
