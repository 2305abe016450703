//! `evenhand-fleet data`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use evenhand_program::exit::Exit;
use serde_json::Value;
use tempfile::tempdir;
use zip::CompressionMethod;

use crate::fixtures::*;

fn run(folder: Option<&Path>, arguments: &[&str], exit: Exit) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenhand-fleet"));
    command.arg("data").args(arguments).env_remove("EVENHAND_DATA");
    if let Some(folder) = folder {
        command.env("EVENHAND_DATA", folder);
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(i32::from(u8::from(exit))), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn filled() -> tempfile::TempDir {
    let folder = tempdir().unwrap();
    let (images, labels) = mnist(3);
    put_mnist(folder.path(), &images, &labels);
    put(folder.path(), "cifar10/data_batch_1.bin", b"broken");
    put(folder.path(), "pathmnist/pathmnist.npz", &pathmnist("test", &[1, 2], CompressionMethod::Stored));
    let books = gzip(fi2010(2).join("\n").as_bytes());
    put(folder.path(), "hft_substitute_bitstamp/bitstamp_fi2010layout_zscore.txt.gz", &books);
    for id in ["MAC000002", "MAC000003"] {
        put(folder.path(), &format!("smartmeters_london/csv/{id}.csv"), meter(id, 1500, steady).as_bytes());
    }
    folder
}

fn entry(catalogue: &Value, name: &str) -> Value {
    let entries = catalogue["datasets"].as_array().unwrap();
    entries.iter().find(|entry| entry["dataset"] == name).unwrap().clone()
}

fn json(folder: &Path, exit: Exit) -> Value {
    serde_json::from_str(&run(Some(folder), &["--json"], exit)).unwrap()
}

#[test]
fn the_catalogue_lists_complete_broken_and_missing_data_sets() {
    let folder = filled();
    let catalogue: Value = serde_json::from_str(&run(Some(folder.path()), &["--json"], Exit::Data)).unwrap();
    let state = |name: &str| entry(&catalogue, name);
    let states = ["mnist", "cifar10", "pathmnist", "hft", "electricity", "meters", "synthetic"]
        .map(|name| state(name)["state"].clone());
    assert_eq!(states, ["subset", "broken", "subset", "substitute", "missing", "subset", "made-up"]);
    assert_eq!(state("mnist")["samples"], 3);
    assert_eq!(state("mnist")["files"][0]["as_published"], false, "three pictures are not MNIST");
    assert_eq!(state("hft")["note"], "Bitstamp substitute, not FI-2010");
    assert_eq!(state("meters")["note"], "2 households");
    assert!(
        state("cifar10")["note"]
            .as_str()
            .unwrap()
            .contains("data_batch_1.bin, byte 0: 3073 bytes should follow")
    );
    // Of the unpacked file: what `zcat FILE | sha256sum` says.
    use sha2::Digest;
    let expected = sha2::Sha256::digest(fi2010(2).join("\n"))
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<String>();
    assert_eq!(state("hft")["files"][0]["sha256"], expected);
}

#[test]
fn the_table_fits_a_terminal() {
    let folder = filled();
    let text = run(None, &["--data", folder.path().to_str().unwrap()], Exit::Data);
    for line in text.lines().filter(|line| !line.contains(folder.path().to_str().unwrap())) {
        assert!(line.chars().count() <= 100, "{line}");
    }
    for words in [
        "mnist        subset, 3 samples",
        "hft          SUBSTITUTE, 2 samples",
        "  Bitstamp substitute, not FI-2010",
        "electricity  missing\n  published at https://data.open-power-system-data.org",
        "NOT as published)",
    ] {
        assert!(text.contains(words), "{words:?} in\n{text}");
    }
}

#[test]
fn without_a_folder_the_remedy_is_printed() {
    let text = run(None, &[], Exit::Ok);
    assert!(
        text.starts_with(
            "No data folder: name one with --data DIR or EVENHAND_DATA. `--dataset synthetic` needs none.\n"
        ),
        "{text}"
    );
    assert_eq!(text.matches("missing").count(), 6, "{text}");
    assert!(run(None, &["--help"], Exit::Ok).contains("train-images-idx3-ubyte"));
}

#[test]
fn missing_data_are_no_failure_and_broken_data_have_checksums() {
    let folder = tempdir().unwrap();
    assert_eq!(entry(&json(folder.path(), Exit::Ok), "mnist")["state"], "missing");
    let (images, labels) = mnist(3);
    put_mnist(folder.path(), &images, &labels[..9]);
    let found = entry(&json(folder.path(), Exit::Data), "mnist");
    assert_eq!((&found["state"], found["files"].as_array().unwrap().len()), (&"broken".into(), 2));
    assert_eq!(found["files"][1]["bytes"], 9);
    // One of the two cannot even be read.
    fs::remove_file(folder.path().join("mnist/train-images-idx3-ubyte")).unwrap();
    fs::create_dir(folder.path().join("mnist/train-images-idx3-ubyte")).unwrap();
    let found = entry(&json(folder.path(), Exit::Data), "mnist");
    assert!(found["note"].as_str().unwrap().contains("here is a folder"), "{found}");
    assert_eq!(found["files"].as_array().unwrap().len(), 1, "{found}");
}

#[test]
fn a_folder_that_cannot_be_read_is_reported() {
    let folder = tempdir().unwrap();
    let nowhere = folder.path().join("nowhere");
    let problem = format!(
        "the data folder {} cannot be read: No such file or directory (os error 2); \
         name another with --data DIR or EVENHAND_DATA",
        nowhere.display()
    );
    let text = run(Some(&nowhere), &[], Exit::Data);
    assert!(text.starts_with(&format!("No data sets: {problem}\n")), "{text}");
    let catalogue = json(&nowhere, Exit::Data);
    assert_eq!(catalogue["problem"], problem);
    assert_eq!(entry(&catalogue, "mnist")["state"], "missing");
    assert_eq!(json(folder.path(), Exit::Ok)["problem"], Value::Null);
}

#[test]
fn a_folder_need_not_be_text() {
    let folder = tempdir().unwrap();
    let folder = folder.path().join(OsStr::from_bytes(b"bad\xff"));
    let (images, labels) = mnist(3);
    put_mnist(&folder, &images, &labels);
    let catalogue = json(&folder, Exit::Ok);
    assert!(catalogue["folder"].as_str().unwrap().ends_with("bad\u{fffd}"), "{catalogue}");
    assert_eq!(entry(&catalogue, "mnist")["samples"], 3);
}

#[test]
fn files_in_different_places_are_all_listed() {
    let folder = tempdir().unwrap();
    let (images, labels) = mnist(3);
    put(folder.path(), "mnist/train-images-idx3-ubyte", &images);
    put(folder.path(), "train-labels-idx1-ubyte", &labels);
    let found = entry(&json(folder.path(), Exit::Ok), "mnist");
    assert_eq!((&found["samples"], found["files"].as_array().unwrap().len()), (&3.into(), 2), "{found}");
}
