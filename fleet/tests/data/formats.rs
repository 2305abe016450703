//! Sound files in each published format.

use clap::ValueEnum;
use evenhand_fleet::data::{self, Dataset, SampleTargets};
use evenhand_models::{LoadOptions, Model};
use tempfile::tempdir;
use zip::CompressionMethod;

use crate::fixtures::*;

fn classes(targets: &SampleTargets) -> (&[u32], u32) {
    match targets {
        SampleTargets::Classes { of, count } => (of, *count),
        SampleTargets::Values { .. } => panic!("values"),
    }
}

fn values(targets: &SampleTargets) -> (&[f32], &[(f32, f32)]) {
    match targets {
        SampleTargets::Values { of, scales } => (of, scales),
        SampleTargets::Classes { .. } => panic!("classes"),
    }
}

fn near(found: f32, expected: f32) {
    assert!((found - expected).abs() < 1e-4, "{found} instead of {expected}");
}

#[test]
fn digits_are_padded_with_black() {
    let folder = tempdir().unwrap();
    let (images, labels) = mnist(3);
    put_mnist(folder.path(), &images, &labels);
    for (request, black, white) in [(PAPER, -0.1307 / 0.3081, 2.8215), (CODE, -0.3637, 3.2700)] {
        let pool = data::load(Dataset::Mnist, Some(folder.path()), &request).unwrap();
        assert_eq!((pool.shape.as_slice(), pool.len(), pool.recorded), (&[1, 32, 32][..], 3, 3));
        assert_eq!(classes(&pool.targets), (&[0, 1, 2][..], 10));
        let first = pool.sample(0);
        near(first[0], black);
        near(first[2 * 32 + 2], black);
        near(first[2 * 32 + 2 + 27], black + 27.0 / 255.0 * (white - black));
        near(first[2 * 32 + 30], black);
        near(first[3 * 32 + 2], black + 28.0 / 255.0 * (white - black));
        // Pixel 255 lies in line 9 at 3.
        near(first[11 * 32 + 5], white);
        assert!(first[30 * 32..].iter().all(|pixel| *pixel == first[0]));
        // 784 = 3·256 + 16: the second picture begins with 16.
        near(pool.sample(1)[2 * 32 + 2], black + 16.0 / 255.0 * (white - black));
    }
}

#[test]
fn packed_files_are_the_same_files_and_folders_are_optional() {
    let (images, labels) = mnist(3);
    let plain = tempdir().unwrap();
    put_mnist(plain.path(), &images, &labels);
    let packed = tempdir().unwrap();
    put(packed.path(), "train-images-idx3-ubyte.gz", &gzip(&images));
    put(packed.path(), "train-labels-idx1-ubyte", &gzip(&labels));
    assert_eq!(load(Dataset::Mnist, plain.path()).unwrap(), load(Dataset::Mnist, packed.path()).unwrap());
}

#[test]
fn no_more_is_unpacked_than_is_needed() {
    let folder = tempdir().unwrap();
    let (images, labels) = mnist(50);
    put_mnist(folder.path(), &images, &labels);
    let load = |request| data::load(Dataset::Mnist, Some(folder.path()), &request).unwrap();
    let of = |request| classes(&load(request).targets).0.to_vec();
    let few = data::DataRequest { samples_max: 12, ..CODE };
    assert_eq!(of(few), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1], "the code takes the first ones");
    assert_eq!((load(few).features.len(), load(few).recorded), (12 * 1024, 50));
    let drawn = data::DataRequest { samples_max: 12, ..PAPER };
    assert_eq!(of(drawn).len(), 12);
    assert_ne!(of(drawn), of(few), "the paper draws");
    assert_eq!(load(drawn), load(drawn));
    assert_ne!(load(drawn), load(data::DataRequest { seed: 2, ..drawn }));
}

#[test]
fn photographs_are_three_channels() {
    let folder = tempdir().unwrap();
    put(folder.path(), "cifar10/data_batch_1.bin", &cifar(&[3, 9]));
    put(folder.path(), "cifar10/data_batch_4.bin.gz", &gzip(&cifar(&[0])));
    put(folder.path(), "cifar10/test_batch.bin", &cifar(&[7, 7, 7]));
    let pool = load(Dataset::Cifar10, folder.path()).unwrap();
    assert_eq!((pool.shape.as_slice(), pool.recorded), (&[3, 32, 32][..], 3));
    assert_eq!(classes(&pool.targets), (&[3, 9, 0][..], 10));
    assert_eq!(pool.note.as_deref(), Some("2 of the 5 training batches of CIFAR-10"));
    let channels = |pool: &data::SamplePool| [0, 1023, 1024, 2047, 2048, 3071].map(|at| pool.sample(1)[at]);
    for (found, expected) in channels(&pool).into_iter().zip([-1.0, -1.0, 1.0, 1.0, -0.6, -0.6]) {
        near(found, expected);
    }
    let code = data::load(Dataset::Cifar10, Some(folder.path()), &CODE).unwrap();
    let twice = |value: f32, mean: f32, deviation: f32| ((value - mean) / deviation - 0.5) / 0.5;
    let expected = [twice(0.0, 0.4914, 0.247), twice(1.0, 0.4822, 0.2435), twice(0.2, 0.4465, 0.2616)];
    for (found, expected) in channels(&code).into_iter().step_by(2).zip(expected) {
        near(found, expected);
    }
}

#[test]
fn tissue_comes_channel_by_channel_stored_or_deflated() {
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let folder = tempdir().unwrap();
        put(folder.path(), "pathmnist/pathmnist_small.npz", &pathmnist("test", &[8, 0], method));
        let pool = load(Dataset::Pathmnist, folder.path()).unwrap();
        assert_eq!((pool.shape.as_slice(), pool.recorded), (&[3, 28, 28][..], 2));
        assert_eq!(classes(&pool.targets), (&[8, 0][..], 9));
        assert_eq!(
            pool.note.as_deref(),
            Some("2 images of the test split of PathMNIST, not all 89996 of train")
        );
        for (channel, value) in [1.0, 101.0, 201.0].into_iter().enumerate() {
            for at in [0, 783] {
                near(pool.sample(1)[channel * 784 + at], (value / 255.0 - 0.5) / 0.5);
            }
        }
    }
}

#[test]
fn the_training_split_is_preferred() {
    let folder = tempdir().unwrap();
    let pixels = vec![7; 28 * 28 * 3];
    let array = |label| (npy("(1, 28, 28, 3)", &pixels), npy("(1, 1)", &[label]));
    let ((test_images, test_labels), (train_images, train_labels)) = (array(1), array(2));
    let members = [
        ("test_images.npy", test_images),
        ("test_labels.npy", test_labels),
        ("train_images.npy", train_images),
        ("train_labels.npy", train_labels),
    ];
    put(folder.path(), "pathmnist.npz", &npz(&members, CompressionMethod::Stored));
    assert_eq!(classes(&load(Dataset::Pathmnist, folder.path()).unwrap().targets).0, [2]);
}

#[test]
fn a_packed_archive_is_unpacked() {
    let archive = pathmnist("train", &[8, 0], CompressionMethod::Deflated);
    let [plain, packed] =
        [("pathmnist.npz", archive.clone()), ("pathmnist.npz.gz", gzip(&archive))].map(|(name, bytes)| {
            let folder = tempdir().unwrap();
            put(folder.path(), &format!("pathmnist/{name}"), &bytes);
            load(Dataset::Pathmnist, folder.path()).unwrap()
        });
    assert_eq!(plain, packed);
}

#[test]
fn a_byte_order_mark_is_no_data() {
    let [plain, marked] = ["", "\u{feff}"].map(|mark| {
        let folder = tempdir().unwrap();
        put(
            folder.path(),
            "hft/Train_Dst_NoAuction_ZScore_CF_3.txt",
            (mark.to_owned() + &fi2010(5).join("\n")).as_bytes(),
        );
        put(
            folder.path(),
            "electricity/de_load_15min_opsd_index.csv",
            (mark.to_owned() + &opsd(1400, "DE_load_MW")).as_bytes(),
        );
        [Dataset::Hft, Dataset::Electricity].map(|dataset| load(dataset, folder.path()).unwrap())
    });
    assert_eq!(plain, marked);
}

#[test]
fn order_books_have_a_column_for_each_sample() {
    let folder = tempdir().unwrap();
    put_fi2010(folder.path(), &fi2010(5));
    let pool = load(Dataset::Hft, folder.path()).unwrap();
    assert_eq!((pool.shape.as_slice(), pool.recorded, pool.note.as_deref()), (&[144][..], 5, None));
    assert_eq!(classes(&pool.targets), (&[0, 1, 2, 0, 1][..], 3));
    let expected: Vec<f32> = (0..144).map(|feature| feature as f32 + 0.3).collect();
    for (found, expected) in pool.sample(3).iter().zip(expected) {
        near(*found, expected);
    }
}

#[test]
fn a_substitute_is_noted_and_the_published_file_preferred() {
    let folder = tempdir().unwrap();
    let text = gzip(fi2010(4).join("\n").as_bytes());
    put(folder.path(), "hft_substitute_bitstamp/bitstamp_fi2010layout_zscore.txt.gz", &text);
    let substitute = load(Dataset::Hft, folder.path()).unwrap();
    assert_eq!(
        (substitute.recorded, substitute.note.as_deref()),
        (4, Some("Bitstamp substitute, not FI-2010"))
    );
    put_fi2010(folder.path(), &fi2010(5));
    assert_eq!(load(Dataset::Hft, folder.path()).unwrap().note, None);
}

#[test]
fn loads_become_windows_that_do_not_look_ahead() {
    let folder = tempdir().unwrap();
    put(
        folder.path(),
        "time_series_15min_singleindex.csv",
        opsd(1800, "DE_load_actual_entsoe_transparency").as_bytes(),
    );
    let long = load(Dataset::Electricity, folder.path()).unwrap();
    assert_eq!((long.shape.as_slice(), long.note.as_deref()), (&[24, 5][..], None));
    // After two weeks, every third of the quarter hours 1344, 1347, … 1797.
    assert_eq!((long.recorded, long.len()), (152, 152));
    let (of, scales) = values(&long.targets);
    for (number, (value, (mean, deviation))) in of.iter().zip(scales).enumerate() {
        let measured = load_of(1344 + 3 * number) as f32;
        assert!((value * deviation + mean - measured).abs() < 1.0, "{number}");
        let before = long.sample(number)[23 * 5];
        assert!((before * deviation + mean - load_of(1343 + 3 * number) as f32).abs() < 1.0, "{number}");
    }
    put(
        folder.path(),
        "time_series_15min_singleindex.csv",
        opsd(1500, "DE_load_actual_entsoe_transparency").as_bytes(),
    );
    let short = load(Dataset::Electricity, folder.path()).unwrap();
    assert_eq!(short.features[..], long.features[..short.features.len()], "the future changes nothing");
    assert_eq!(values(&short.targets).0, &of[..short.len()]);
}

#[test]
fn the_published_code_looks_back_a_year() {
    let folder = tempdir().unwrap();
    let quarters = 100 + 35_041 + 10;
    put(
        folder.path(),
        "electricity_de/de_load_15min_opsd_index.csv.gz",
        &gzip(opsd(quarters, "DE_load_MW").as_bytes()),
    );
    let pool = data::load(Dataset::Electricity, Some(folder.path()), &CODE).unwrap();
    assert_eq!((pool.shape.as_slice(), pool.recorded), (&[520][..], 4));
    assert_eq!(pool.note.as_deref(), Some("German load as SMARD publishes it, not OPSD's revision"));
    let (of, scales) = values(&pool.targets);
    let restored = |normalised: f32| f64::from(normalised * scales[0].1 + scales[0].0);
    let target = 100 + 35_041 + 3;
    assert!((restored(of[1]) - load_of(target)).abs() < 1.0);
    let lags = [35_040, 96, 192, 288, 384, 480, 576, 672, 5, 4, 3, 2, 1];
    for (at, lag) in lags.into_iter().enumerate() {
        assert!((restored(pool.sample(1)[at * 40]) - load_of(target - lag)).abs() < 1.0, "lag {lag}");
        assert!(pool.sample(1)[at * 40 + 1..(at + 1) * 40].iter().all(|other| *other == 0.0));
    }
}

#[test]
fn every_household_with_enough_readings_is_an_owner() {
    let folder = tempdir().unwrap();
    let put = |name: &str, text: String| {
        put(folder.path(), &format!("smartmeters_london/csv/{name}"), text.as_bytes())
    };
    put("MAC000002.csv", meter("MAC000002", 1500, steady));
    put("MAC000003.csv", meter("MAC000003", 700, steady));
    put(
        "MAC000004.csv",
        meter("MAC000004", 1500, |at| if at.is_multiple_of(3) { steady(at) } else { "0".into() }),
    );
    put("MAC000005.csv", meter("MAC000005", 1500, |at| if at == 800 { "Null".into() } else { steady(at) }));
    let pool = data::load(Dataset::Meters, Some(folder.path()), &CODE).unwrap();
    assert_eq!(pool.note.as_deref(), Some("left out, since too short or mostly zero: MAC000003, MAC000004"));
    // From two weeks on, each half hour; the one that was not measured is no target.
    assert_eq!(pool.owners, Some(vec![0..828, 828..1655]));
    assert_eq!((pool.shape.as_slice(), pool.len()), (&[24, 5][..], 1655));
    let few =
        data::load(Dataset::Meters, Some(folder.path()), &data::DataRequest { samples_max: 30, ..CODE })
            .unwrap();
    assert_eq!(few.owners, Some(vec![0..10, 10..20]), "30 samples for three owners");
}

#[test]
fn a_household_without_samples_is_left_out() {
    let folder = tempdir().unwrap();
    // Long enough, but three of four half hours are missing.
    let gaps = |at: usize| if at.is_multiple_of(4) { steady(at) } else { "Null".into() };
    put(folder.path(), "meters/MAC000002.csv", meter("MAC000002", 6000, gaps).as_bytes());
    put(folder.path(), "meters/MAC000003.csv", meter("MAC000003", 1500, steady).as_bytes());
    let request = data::DataRequest { samples_max: 10, owners_max: 1, ..CODE };
    let pool = data::load(Dataset::Meters, Some(folder.path()), &request).unwrap();
    assert_eq!(pool.owners, Some(std::iter::once(0..10).collect()));
    assert_eq!(pool.note.as_deref(), Some("left out, since too short or mostly zero: MAC000002"));
}

#[test]
fn samples_fit_the_models() {
    for &dataset in Dataset::value_variants() {
        for request in [PAPER, CODE] {
            let (name, bytes) = dataset.model(request.as_published);
            let model = Model::load(bytes, &LoadOptions::default()).unwrap();
            let expected: &[usize] = match name {
                "mnist-cnn" => &[1, 32, 32],
                "cifar-cnn" => &[3, 32, 32],
                "path-cnn" => &[3, 28, 28],
                "hft-mlp" => &[144],
                "electricity-mlp" => &[520],
                "electricity-rnn" => &[24, 5],
                "load-quantiles" => &[41],
                other => panic!("{other}"),
            };
            let shape = &model.input_shape()[1..];
            assert_eq!(shape.len(), expected.len(), "{name}");
            let fits = shape
                .iter()
                .zip(expected)
                .all(|(length, expected)| length.is_none_or(|length| length == *expected));
            assert!(fits, "{name} takes {shape:?}");
        }
    }
}

#[test]
fn synthetic_clusters_are_equal_for_the_same_seed_and_separable() {
    let make = |seed| {
        data::load(Dataset::Synthetic, None, &data::DataRequest { seed, samples_max: 900, ..PAPER }).unwrap()
    };
    let pool = make(1);
    assert_eq!(pool, make(1));
    assert_ne!(pool, make(2));
    // Nearest mean of the first half, on the second half.
    let (of, count) = classes(&pool.targets);
    let mut means = vec![vec![0.0f32; 144]; count as usize];
    for (at, class) in of.iter().enumerate().take(450) {
        means[*class as usize]
            .iter_mut()
            .zip(pool.sample(at))
            .for_each(|(mean, value)| *mean += value / 150.0);
    }
    let distance = |mean: &[f32], at: usize| -> f32 {
        mean.iter().zip(pool.sample(at)).map(|(a, b)| (a - b).powi(2)).sum()
    };
    let nearest = |at: usize| {
        (0..3).min_by(|a, b| distance(&means[*a], at).total_cmp(&distance(&means[*b], at))).unwrap()
    };
    let right = (450..900).filter(|at| nearest(*at) == of[*at] as usize).count();
    assert!(right >= 445, "{right} of 450");
}
