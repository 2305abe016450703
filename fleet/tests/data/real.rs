//! The real files, where EVENHAND_DATA names their folder; elsewhere these tests say that they saw nothing.

use std::io::Read;
use std::path::{Path, PathBuf};

use evenhand_fleet::data::{self, Answers, DataError, Dataset, Request};

use crate::fixtures::{CODE, PAPER};

/// The folder, if MNIST is in it, wherever the loader looks.
fn real_mnist() -> Option<PathBuf> {
    let folder = data::folder(None);
    match data::load(Dataset::Mnist, folder.as_deref(), &Request { samples_max: 1, ..CODE }) {
        Ok(_) => folder,
        Err(error @ (DataError::NoFolder { .. } | DataError::Missing { .. })) => {
            eprintln!("nothing checked: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The folder, if `inside` it lies what a test is about.
fn real(inside: &str) -> Option<PathBuf> {
    let folder = data::folder(None).filter(|folder| folder.join(inside).exists());
    if folder.is_none() {
        eprintln!("nothing checked: EVENHAND_DATA names no folder with {inside}");
    }
    folder
}

fn class_counts(dataset: Dataset, folder: &Path) -> Vec<usize> {
    let pool = data::load(dataset, Some(folder), &CODE).unwrap();
    let Answers::Classes { of, count } = pool.answers else { panic!("values") };
    (0..count).map(|class| of.iter().filter(|of| **of == class).count()).collect()
}

#[test]
fn classes_of_mnist() {
    let Some(folder) = real_mnist() else { return };
    let expected = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949];
    assert_eq!(class_counts(Dataset::Mnist, &folder), expected);
}

#[test]
fn the_code_normalises_mnist_to_mean_0_and_deviation_1() {
    let Some(folder) = real_mnist() else { return };
    let request = Request { samples_max: 60_000, ..CODE };
    let pool = data::load(Dataset::Mnist, Some(&folder), &request).unwrap();
    let count = pool.features.len() as f64;
    let mean = pool.features.iter().map(|value| f64::from(*value)).sum::<f64>() / count;
    let square = pool.features.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>() / count;
    assert!(mean.abs() < 5e-4 && (square - 1.0).abs() < 1e-3, "{mean} {square}");
}

#[test]
fn classes_of_cifar() {
    let Some(folder) = real("cifar10/data_batch_1.bin.gz") else { return };
    if folder.join("cifar10/data_batch_2.bin.gz").exists() {
        eprintln!("nothing checked: the counts are those of the first batch alone");
        return;
    }
    let expected = [1005, 974, 1032, 1016, 999, 937, 1030, 1001, 1025, 981];
    assert_eq!(class_counts(Dataset::Cifar10, &folder), expected);
}

#[test]
fn classes_of_pathmnist() {
    let Some(folder) = real("pathmnist/pathmnist_test718.npz") else { return };
    assert_eq!(class_counts(Dataset::Pathmnist, &folder), [147, 78, 26, 60, 112, 60, 85, 28, 122]);
}

#[test]
fn classes_of_the_substitute_order_book() {
    let Some(folder) = real("hft_substitute_bitstamp") else { return };
    assert_eq!(class_counts(Dataset::Hft, &folder), [2436, 10522, 1948]);
    assert_eq!(
        data::load(Dataset::Hft, Some(&folder), &PAPER).unwrap().note.as_deref(),
        Some("Bitstamp substitute, not FI-2010")
    );
}

#[test]
fn loads_equal_those_of_the_published_notebook() {
    let Some(folder) = real("electricity_de/electricity_loadonly.npz") else { return };
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
    let Answers::Values { of, scales } = &pool.answers else { panic!("classes") };
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
fn households_of_london() {
    let Some(folder) = real("smartmeters_london/csv") else { return };
    let request = Request { samples_max: 1000, owners_max: 100, ..PAPER };
    let pool = data::load(Dataset::Meters, Some(&folder), &request).unwrap();
    let owners = pool.owners.unwrap();
    assert!(owners.len() >= 85 && owners.iter().all(|owner| owner.len() == 10), "{}", owners.len());
    let note = pool.note.unwrap();
    assert!(note.contains("MAC000004") && note.contains("MAC000016"), "{note}");
}
