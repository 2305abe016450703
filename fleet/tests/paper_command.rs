//! The command `paper`: its lists, its published numbers, and one item on synthetic trials.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

use serde_json::Value;

const USAGE: i32 = 64;

fn paper(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenhand-fleet"));
    command.arg("paper").args(arguments).env_remove("EVENHAND_DATA").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_list_names_all_tables_and_figures_with_their_cost() {
    let output = paper(&["--list", "--trials", "2"]);
    let list = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(list.starts_with("43 tables and figures"), "{list}");
    let kinds = |kind: &str| list.lines().filter(|line| line.split_whitespace().nth(1) == Some(kind)).count();
    assert_eq!((kinds("table"), kinds("figure")), (30, 13), "{list}");
    let games = list.lines().find(|line| line.starts_with("fedrl-noise-scores-benchmark")).unwrap();
    assert!(games.contains("not here: reinforcement learning"), "{games}");
    let table = list.lines().find(|line| line.starts_with("pearson-online-loss")).unwrap();
    let cells: Vec<&str> = table.split_whitespace().collect();
    // Fifteen setups of five strategies and as many controls, two trials each.
    assert_eq!(cells[2..4], ["75", "300"], "{table}");
}

#[test]
fn the_published_numbers_are_printed_as_they_are_compiled_in() {
    let output = paper(&["published", "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["cells"].as_array().unwrap().len(), 1269);
    assert_eq!(json["tables"].as_array().unwrap().len(), 30);
    let list = text(&paper(&["published"]).stdout);
    assert!(list.contains("pearson-online-loss") && list.contains("75"), "{list}");
}

#[test]
fn without_trials_every_number_is_not_run_or_not_possible() {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().to_str().unwrap();
    let output = paper(&["agreement", "--no-run", "--json", "--out", folder]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let numbers = json["numbers"].as_array().unwrap();
    let count = |verdict: &str| numbers.iter().filter(|number| number["verdict"] == verdict).count();
    assert_eq!((numbers.len(), count("not-run"), count("unavailable")), (1269, 1227, 42));
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 0, "nothing is written");
}

#[test]
fn what_needs_no_trials_is_printed_at_once() {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().to_str().unwrap();
    let documents = out.path().join("documents");
    let flags = ["effects-of-beta-Gamma", "--no-run", "--out", folder, "--format", "markdown", "--documents"];
    let output = paper(&[&flags[..], &[documents.to_str().unwrap()]].concat());
    let markdown = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    // As β grows all wait alike: q = 1 − 0.9⁴, Γ = (1 − q)/q² = 5.55.
    let equal = markdown.lines().find(|line| line.starts_with("| 1/0.001 |")).unwrap();
    assert_eq!(equal, "| 1/0.001 | 5.55 | 5.55 | 5.55 |", "{markdown}");
    let document = std::fs::read_to_string(documents.join("effects-of-beta-Gamma.md")).unwrap();
    assert!(document.contains("`evenhand-fleet paper effects-of-beta-Gamma --data DIR"), "{document}");
}

#[test]
fn an_unknown_item_is_refused_with_the_way_to_the_list() {
    for arguments in [&["figure-7"][..], &[]] {
        let output = paper(arguments);
        assert_eq!(output.status.code(), Some(USAGE), "{arguments:?}");
    }
    assert!(text(&paper(&["figure-7"]).stderr).contains("paper --list` names them"));
}
