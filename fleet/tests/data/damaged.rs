//! Damaged files never cause a panic.

use std::path::Path;

use evenhand_fleet::data::Dataset;
use proptest::prelude::*;
use tempfile::tempdir;
use zip::CompressionMethod;

use crate::fixtures::*;

/// What became of a file on its way.
#[derive(Debug, Clone)]
enum Harm {
    Cut(prop::sample::Index),
    Changed(prop::sample::Index, u8),
    Grown(Vec<u8>),
    Other(Vec<u8>),
}

fn harm() -> impl Strategy<Value = Harm> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..200);
    prop_oneof![
        any::<prop::sample::Index>().prop_map(Harm::Cut),
        (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, byte)| Harm::Changed(at, byte)),
        bytes().prop_map(Harm::Grown),
        bytes().prop_map(Harm::Other),
    ]
}

impl Harm {
    fn done(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        match self {
            Harm::Cut(at) => bytes.truncate(at.index(bytes.len())),
            // The heads of files are short, and where most can go wrong.
            Harm::Changed(at, byte) => {
                let reach = if byte.is_multiple_of(2) { bytes.len() } else { bytes.len().min(160) };
                bytes[at.index(reach)] ^= byte;
            }
            Harm::Grown(more) => bytes.extend(more),
            Harm::Other(other) => bytes.clone_from(other),
        }
        bytes
    }
}

fn load_harmed(dataset: Dataset, harm: &Harm, packed: bool, files: &[(&str, Vec<u8>)]) {
    let folder = tempdir().unwrap();
    let (harmed, sound) = files.split_last().unwrap();
    sound.iter().for_each(|(name, bytes)| put(folder.path(), name, bytes));
    let bytes = if packed { harm.done(gzip(&harmed.1)) } else { harm.done(harmed.1.clone()) };
    put(folder.path(), harmed.0, &bytes);
    check(dataset, folder.path());
}

/// Either samples of the right kind, or a complaint that names the file.
fn check(dataset: Dataset, folder: &Path) {
    match load(dataset, folder) {
        Ok(pool) => {
            assert!(
                !pool.is_empty() && pool.features.len() == pool.len() * pool.shape.iter().product::<usize>()
            );
            assert!(pool.features.iter().all(|feature| feature.is_finite()));
        }
        Err(error) => assert!(error.to_string().contains(&*folder.to_string_lossy()), "{error}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn harmed_files_never_panic(harm in harm(), packed: bool) {
        let (images, labels) = mnist(2);
        let mnist = [("train-labels-idx1-ubyte", labels.clone()), ("train-images-idx3-ubyte", images.clone())];
        load_harmed(Dataset::Mnist, &harm, packed, &mnist);
        let mnist = [("train-images-idx3-ubyte", images), ("train-labels-idx1-ubyte", labels)];
        load_harmed(Dataset::Mnist, &harm, packed, &mnist);
        load_harmed(Dataset::Cifar10, &harm, packed, &[("data_batch_1.bin", cifar(&[1, 2]))]);
        for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
            let archive = [("pathmnist.npz.gz", gzip(&pathmnist("train", &[1, 2], method)))];
            load_harmed(Dataset::Pathmnist, &harm, packed, &archive);
            load_harmed(Dataset::Pathmnist, &harm, packed, &[("pathmnist.npz", pathmnist("train", &[1, 2], method))]);
        }
        let books = fi2010(2).join("\n").into_bytes();
        load_harmed(Dataset::Hft, &harm, packed, &[("Train_Dst_NoAuction_ZScore_CF_3.txt", books)]);
        let loads = opsd(1360, "DE_load_MW").into_bytes();
        load_harmed(Dataset::Electricity, &harm, packed, &[("de_load_15min_opsd_index.csv", loads)]);
        let meter = meter("MAC000002", 1441, steady).into_bytes();
        load_harmed(Dataset::Meters, &harm, packed, &[("MAC000002.csv", meter)]);
    }
}
