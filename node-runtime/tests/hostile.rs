//! Foreign bytes: the corpora of the fuzz targets, whole and damaged.
#![allow(clippy::unwrap_used)]

#[path = "../fuzz/checks.rs"]
mod checks;

use std::fs;
use std::path::Path;

use evenhand_node::journal;
use proptest::prelude::*;

/// The files of one target.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

#[test]
fn the_corpora_do_no_harm() {
    for (target, check) in checks::ALL {
        let files = corpus(target);
        assert!(files.len() >= 4, "{target}");
        files.iter().for_each(|bytes| check(bytes));
    }
}

#[test]
fn the_journals_of_the_corpus_are_read_as_far_as_they_are_whole() {
    let entries: Vec<usize> = corpus("journal").iter().map(|bytes| journal::read(bytes).0.len()).collect();
    assert_eq!(entries, [1, 1, 1, 2], "garbled, rows, torn, two");
}

proptest! {
    #[test]
    fn damaged_files_do_no_harm(which: prop::sample::Index, at: prop::sample::Index, cut: prop::sample::Index, byte: u8, repeat in 1usize..3) {
        for (target, check) in checks::ALL {
            let files = corpus(target);
            let mut bytes = which.get(&files).repeat(repeat);
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
                check(&bytes);
                bytes.truncate(cut.index(bytes.len()));
            }
            check(&bytes);
        }
    }

    #[test]
    fn any_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        checks::ALL.iter().for_each(|(_, check)| check(&bytes));
    }
}
