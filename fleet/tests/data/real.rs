//! The real files in the folder that EVENHAND_DATA names. Without it these tests are ignored; `tests/run` runs them where it
//! is set.

use std::io::Read;
use std::path::{Path, PathBuf};

use evenhand_fleet::data::{self, DataRequest, Dataset, SampleTargets};

use crate::fixtures::{CODE, PAPER};

/// The folder, in which `inside` has to be.
fn real(inside: &str) -> PathBuf {
    let folder = data::folder(None).expect("EVENHAND_DATA names a folder");
    assert!(folder.join(inside).exists(), "{inside} is not in {}", folder.display());
    folder
}

/// The folder, with MNIST in a place where the loader finds it.
fn real_mnist() -> PathBuf {
    let folder = data::folder(None).expect("EVENHAND_DATA names a folder");
    data::load(Dataset::Mnist, Some(&folder), &DataRequest { samples_max: 1, ..CODE }).unwrap();
    folder
}

fn class_counts(dataset: Dataset, folder: &Path) -> Vec<usize> {
    let pool = data::load(dataset, Some(folder), &CODE).unwrap();
    let SampleTargets::Classes { of, count } = pool.targets else { panic!("values") };
    (0..count).map(|class| of.iter().filter(|of| **of == class).count()).collect()
}

#[test]
#[ignore = "needs EVENHAND_DATA"]
fn classes_of_mnist() {
    let folder = real_mnist();
    let expected = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949];
    assert_eq!(class_counts(Dataset::Mnist, &folder), expected);
}

#[test]
#[ignore = "needs EVENHAND_DATA"]
fn the_code_normalises_mnist_to_mean_0_and_deviation_1() {
    let folder = real_mnist();
    let request = DataRequest { samples_max: 60_000, ..CODE };
    let pool = data::load(Dataset::Mnist, Some(&folder), &request).unwrap();
    let count = pool.features.len() as f64;
    let mean = pool.features.iter().map(|value| f64::from(*value)).sum::<f64>() / count;
    let square = pool.features.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>() / count;
    assert!(mean.abs() < 5e-4 && (square - 1.0).abs() < 1e-3, "{mean} {square}");
}

#[test]
#[ignore = "needs EVENHAND_DATA"]
fn classes_of_cifar() {
    let folder = real("cifar10/data_batch_1.bin.gz");
    let is_first_batch_alone = !folder.join("cifar10/data_batch_2.bin.gz").exists();
    let first_batch = [1005, 974, 1032, 1016, 999, 937, 1030, 1001, 1025, 981];
    let expected = if is_first_batch_alone { first_batch } else { [5000; 10] };
    assert_eq!(class_counts(Dataset::Cifar10, &folder), expected);
}

#[test]
#[ignore = "needs EVENHAND_DATA"]
fn classes_of_pathmnist() {
    let folder = real("pathmnist/pathmnist_test718.npz");
    assert_eq!(class_counts(Dataset::Pathmnist, &folder), [147, 78, 26, 60, 112, 60, 85, 28, 122]);
}

#[test]
#[ignore = "needs EVENHAND_DATA"]
fn classes_of_the_substitute_order_book() {
    let folder = real("hft_substitute_bitstamp");
    assert_eq!(class_counts(Dataset::Hft, &folder), [2436, 10522, 1948]);
    assert_eq!(
        data::load(Dataset::Hft, Some(&folder), &PAPER).unwrap().note.as_deref(),
        Some("Bitstamp substitute, not FI-2010")
    );
}

#[test]
#[ignore = "needs EVENHAND_DATA"]
fn loads_equal_those_of_the_published_notebook() {
    let folder = real("electricity_de/electricity_loadonly.npz");
    let mut zip = zip::ZipArchive::new(
        std::fs::File::open(folder.join("electricity_de/electricity_loadonly.npz")).unwrap(),
    )
    .unwrap();
    let mut floats = |name: &str| -> Vec<f32> {
        let mut bytes = Vec::new();
        zip.by_name(name).unwrap().read_to_end(&mut bytes).unwrap();
        let head = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        bytes[head..].chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
    };
    let (inputs, targets) = (floats("X.npy"), floats("y.npy"));
    let pool = data::load(Dataset::Electricity, Some(&folder), &CODE).unwrap();
    let SampleTargets::Values { of, scales } = &pool.targets else { panic!("classes") };
    assert_eq!((of.len(), pool.recorded), (55_488, 55_488));
    assert!(
        (scales[0].0 - 57_002.71).abs() < 0.01 && (scales[0].1 - 10_164.905).abs() < 0.01,
        "{:?}",
        scales[0]
    );
    for (found, expected) in of.iter().zip(&targets) {
        assert!((found - expected).abs() < 1e-4);
    }
    for (at, expected) in inputs.chunks_exact(13).enumerate() {
        for (lag, expected) in expected.iter().enumerate() {
            assert!((pool.sample(at)[lag * 40] - expected).abs() < 1e-4, "sample {at}, input {lag}");
        }
    }
}

#[test]
#[ignore = "needs EVENHAND_DATA"]
fn households_of_london() {
    let folder = real("smartmeters_london/csv");
    let request = DataRequest { samples_max: 1000, owners_max: 100, ..PAPER };
    let pool = data::load(Dataset::Meters, Some(&folder), &request).unwrap();
    let owners = pool.owners.unwrap();
    assert!(owners.len() >= 85 && owners.iter().all(|owner| owner.len() == 10), "{}", owners.len());
    let note = pool.note.unwrap();
    assert!(note.contains("MAC000004") && note.contains("MAC000016"), "{note}");
}
