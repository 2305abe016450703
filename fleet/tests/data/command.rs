//! `evenhand-fleet data`.

use std::path::Path;
use std::process::Command;

use evenhand_protocol::exit::Exit;
use serde_json::Value;
use tempfile::tempdir;
use zip::CompressionMethod;

use crate::fixtures::*;

fn run(folder: Option<&Path>, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenhand-fleet"));
    command.arg("data").args(arguments).env_remove("EVENHAND_DATA");
    if let Some(folder) = folder {
        command.env("EVENHAND_DATA", folder);
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(i32::from(u8::from(Exit::Ok))), "{output:?}");
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

#[test]
fn says_what_is_here_and_what_is_not() {
    let folder = filled();
    let catalogue: Value = serde_json::from_str(&run(Some(folder.path()), &["--json"])).unwrap();
    let state = |name: &str| {
        let entries = catalogue["datasets"].as_array().unwrap();
        entries.iter().find(|entry| entry["dataset"] == name).unwrap().clone()
    };
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
    let text = run(None, &["--data", folder.path().to_str().unwrap()]);
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
fn without_a_folder_it_says_how_to_name_one() {
    let text = run(None, &[]);
    assert!(
        text.starts_with(
            "No data folder: name one with --data DIR or EVENHAND_DATA. `--dataset synthetic` needs none.\n"
        ),
        "{text}"
    );
    assert_eq!(text.matches("missing").count(), 6, "{text}");
    assert!(run(None, &["--help"]).contains("train-images-idx3-ubyte"));
}
