//! Foreign bytes: the corpora of the fuzz targets, whole and damaged.
#![allow(clippy::unwrap_used)]

#[path = "../fuzz/checks.rs"]
mod checks;

use std::fs;
use std::path::Path;

use evenhand_node::journal;
use evenhand_node::source::d0::{self, D0Config, Telegrams};
use evenhand_node::source::http::PolledAnswer;
use evenhand_node::source::sml::{self, SmlConfig, SmlTelegrams};
use proptest::prelude::*;

/// What a mutated input is given to.
type Target<'a> = dyn Fn(&[u8]) + 'a;

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

/// Numbers of a xorshift generator: a million inputs must cost little more than reading them.
struct Mutations(u64);

impl Mutations {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    /// Overwrites, removes, repeats or cuts in up to four places.
    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len().max(1));
            match self.below(6) {
                _ if bytes.is_empty() => return,
                0 => bytes.truncate(at),
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, bytes[at]),
                _ => bytes[at] = self.below(256) as u8,
            }
        }
    }
}

/// The parsers of the meters that send by themselves, of SunSpec models, of Modbus and of HTTP: 200,000 mutations each.
#[test]
fn a_million_mutated_inputs_do_no_harm() {
    const EACH: usize = 200_000;
    let sml_reading = |bytes: &[u8]| {
        let mut telegrams = SmlTelegrams::default();
        telegrams.push(bytes);
        while let Some(content) = telegrams.take() {
            let _ = sml::reading(&content, &SmlConfig::default());
        }
        if let Ok(reading) = sml::reading(bytes, &SmlConfig::default()) {
            assert!(reading.value.is_finite());
        }
    };
    let d0_reading = |bytes: &[u8]| {
        let mut telegrams = Telegrams::default();
        telegrams.push(bytes);
        while let Some(telegram) = telegrams.take() {
            if let Ok(reading) = d0::reading(&telegram, &D0Config::default()) {
                assert!(reading.value.is_finite());
            }
        }
    };
    let http_answer = |bytes: &[u8]| {
        let mut answer = PolledAnswer::default();
        let (first, rest) = bytes.split_at(bytes.len() / 2);
        let _ended = [first, rest, b""].into_iter().find_map(|block| answer.push(block).transpose());
    };
    let targets: [(&str, &Target<'_>); 5] = [
        ("d0", &d0_reading),
        ("http", &http_answer),
        ("modbus", &checks::modbus),
        ("sml", &sml_reading),
        ("sunspec", &checks::sunspec),
    ];
    let (mut mutations, mut mutated) = (Mutations(0x9e37_79b9_7f4a_7c15), Vec::new());
    for (target, check) in targets {
        let files = corpus(target);
        for number in 0..EACH {
            mutated.clone_from(&files[number % files.len()]);
            mutations.mutate(&mut mutated);
            check(&mutated);
        }
    }
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
