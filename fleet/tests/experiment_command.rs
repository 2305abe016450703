//! The commands `experiment` and `compare`, on synthetic data.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const INTERRUPTED: i32 = 130;
const USAGE: i32 = 64;
const SOFTWARE: i32 = 70;
const SMALL: [&str; 14] = [
    "--nodes",
    "4",
    "--rounds",
    "16",
    "--k",
    "2",
    "--tested-nodes",
    "2",
    "--window",
    "4",
    "--batch",
    "3",
    "--strategy",
    "evenhand,fedavg",
];

fn command(out: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenhand-fleet"));
    command.args(arguments).arg("--out").arg(out).env_remove("EVENHAND_DATA");
    command
}

fn experiment(out: &Path, more: &[&str]) -> Output {
    let arguments = [&["experiment", "--dataset", "synthetic"], SMALL.as_slice(), more].concat();
    command(out, &arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn an_experiment_is_run_once_and_shown_as_often_as_wanted() {
    let out = tempfile::tempdir().unwrap();
    let first = experiment(out.path(), &["--trials", "2", "--json"]);
    assert!(first.status.success(), "{}", text(&first.stderr));
    let json: Value = serde_json::from_slice(&first.stdout).unwrap();
    let names: Vec<&str> =
        json["strategies"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["evenhand", "fedavg"]);
    assert_eq!(json["strategies"][0]["trials"], 2);
    assert!(json["strategies"][0]["online_accuracy"]["mean"]["mean"].is_f64());
    assert_eq!(json["settings"]["rounds"], 16);
    let evenhand = &json["strategies"][0];
    for name in ["rho_standing", "recall", "rho_staleness", "rho_loss"] {
        assert!(evenhand[name]["mean"].is_f64(), "{name}: {evenhand}");
        assert!(evenhand["level_0"].as_object().unwrap().contains_key(name), "{name}: {evenhand}");
    }
    assert_eq!(evenhand["level_0"]["trials"], 2);
    assert!(evenhand["level_0"]["rho_standing"]["mean"].is_f64(), "{evenhand}");
    for name in ["rho_worth", "online_mape"] {
        assert!(evenhand.as_object().unwrap().contains_key(name) && evenhand[name].is_null(), "{name}");
    }

    let again = experiment(out.path(), &["--trials", "2"]);
    assert!(text(&again.stderr).contains("8 of 8 trials are done already"), "{}", text(&again.stderr));
    let table = text(&again.stdout);
    assert!(table.contains("Evenhand") && table.contains("FedAvg") && table.contains('±'), "{table}");
    let head = table.lines().nth(1).unwrap();
    let columns =
        ["ρ(standing)", "ρ(staleness)", "ρ(loss)"].map(|rho| format!("{rho}  ")).map(|rho| head.find(&rho));
    assert!(columns.is_sorted() && columns[0].is_some(), "side by side: {head}");
    assert_eq!(head.matches("level 0").count(), 3, "a control beside every ρ: {head}");
    assert!(!table.contains("NaN"), "{table}");
    let own = "nodes-4,rounds-16,batch-3,k-2,window-4,tested-nodes-2";
    let report = out.path().join(format!("synthetic/feature-noise/paper/report-{own}.html"));
    assert!(table.contains(&report.display().to_string()) && report.is_file(), "{table}");
}

#[test]
fn without_a_control_only_the_trials_are_run() {
    let out = tempfile::tempdir().unwrap();
    let output = experiment(out.path(), &["--trials", "1", "--no-control"]);
    let (said, table) = (text(&output.stderr), text(&output.stdout));
    assert!(said.contains("2 trials") && !table.contains("level 0"), "{said}{table}");
}

#[test]
fn the_useful_rate_is_found_and_can_be_asked_for() {
    let out = tempfile::tempdir().unwrap();
    let flags = "experiment --find-rate --nodes 4 --rounds 12 --tested-nodes 2 --window 4 --batch 3 --trials 1 --json";
    let flags: Vec<&str> = flags.split(' ').collect();
    let output = command(out.path(), &flags).output().unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rates = json["rates"].as_array().unwrap();
    let factors: Vec<f64> = rates.iter().map(|rate| rate["factor"].as_f64().unwrap()).collect();
    assert_eq!(factors, [1.0, 3.0, 10.0, 30.0, 100.0]);
    let score = |rate: &Value| rate["online"]["mean"].as_f64().unwrap_or(0.0);
    let best = rates.iter().max_by(|one, other| score(one).total_cmp(&score(other))).unwrap();
    assert_eq!(json["best_learning_rate"], best["learning_rate"]);
    let factor = json["best_factor"].to_string();
    let at_it =
        experiment(out.path(), &["--trials", "1", "--json", "--rate-factor", &factor, "--no-control"]);
    let at_it: Value = serde_json::from_slice(&at_it.stdout).unwrap();
    assert_eq!(at_it["settings"]["learning_rate"], best["learning_rate"]);
}

#[test]
fn trials_at_the_same_time_find_what_trials_one_by_one_find() {
    let found = ["1", "4"].map(|jobs| {
        let out = tempfile::tempdir().unwrap();
        let output = experiment(out.path(), &["--trials", "2", "--json", "--no-progress", "--jobs", jobs]);
        assert_eq!(text(&output.stderr), "");
        let mut json: Value = serde_json::from_slice(&output.stdout).unwrap();
        for strategy in json["strategies"].as_array_mut().unwrap() {
            for name in ["seconds", "seconds_training", "seconds_fairness"] {
                strategy.as_object_mut().unwrap().remove(name).unwrap();
            }
        }
        json
    });
    assert_eq!(found[0], found[1]);
}

#[test]
fn a_standalone_node_withholds_no_update() {
    let accuracies = |corruption: &str| {
        let out = tempfile::tempdir().unwrap();
        let chosen = ["--corruption", corruption, "--trials", "1", "--json"];
        let mut arguments = [&["experiment", "--dataset", "synthetic"], SMALL.as_slice(), &chosen].concat();
        *arguments.iter_mut().find(|argument| **argument == "evenhand,fedavg").unwrap() = "standalone,cons";
        let output = command(out.path(), &arguments).output().unwrap();
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        [0, 1].map(|strategy| json["strategies"][strategy]["online_accuracy"].clone())
    };
    let [alone, together] = accuracies("feature-noise");
    let [still_alone, in_part] = accuracies("strategic-random");
    assert_eq!(alone, still_alone);
    assert_ne!(together, in_part, "who keeps its update to itself does not take part in a consensus");
    let [clean, _] = accuracies("none");
    let [away, _] = accuracies("unstable");
    assert_eq!(clean, away);
}

#[test]
fn an_interrupted_experiment_says_how_to_go_on() {
    let out = tempfile::tempdir().unwrap();
    let arguments =
        [&["experiment", "--dataset", "synthetic", "--trials", "1000", "--jobs", "1"], SMALL.as_slice()]
            .concat();
    let mut child =
        command(out.path(), &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("of 4000 trials done") {
        line.clear();
        assert!(errors.read_line(&mut line).unwrap() > 0, "it ended before a trial was done");
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let mut rest = String::new();
    errors.read_to_string(&mut rest).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(INTERRUPTED), "{rest}");
    assert!(output.stdout.is_empty(), "no table of half an experiment");
    assert!(rest.contains("the same command goes on from there"), "{rest}");
    assert!(out.path().join("synthetic/feature-noise/paper/evenhand").is_dir(), "what was done is stored");
}

#[test]
fn comparisons_print_documents_and_objects() {
    let out = tempfile::tempdir().unwrap();
    let flags = ["compare", "cost", "--dataset", "synthetic", "--strategy", "standalone", "--trials", "1"];
    let document = command(out.path(), &[&flags[..], &["--format", "markdown"]].concat()).output().unwrap();
    let markdown = text(&document.stdout);
    assert!(document.status.success(), "{}", text(&document.stderr));
    assert!(
        markdown.contains("`evenhand-fleet compare cost --dataset synthetic --strategy standalone"),
        "{markdown}"
    );
    assert!(markdown.contains("| Standalone |") && markdown.contains("|---|---:|"), "{markdown}");
    let object = command(out.path(), &[&flags[..], &["--json", "--no-progress"]].concat()).output().unwrap();
    let json: Value = serde_json::from_slice(&object.stdout).unwrap();
    assert_eq!(
        (json["table"].as_str(), json["tables"][0]["rows"][0]["name"].as_str()),
        (Some("cost"), Some("Standalone"))
    );
    assert!(json["tables"][0]["rows"][0]["cells"][0]["mean"].is_f64());
    assert!(out.path().join("compare-cost.html").is_file());
    let stored = command(out.path(), &["compare", "all", "--no-run", "--trials", "1"]).output().unwrap();
    let tables = text(&stored.stdout);
    assert!(tables.contains("running time") && tables.contains("Standalone"), "{tables}");
    assert!(!tables.contains("MNIST") && !tables.contains("FedAvg"), "{tables}");
}

#[test]
fn trials_that_fail_are_named_below_the_table_of_the_others() {
    let out = tempfile::tempdir().unwrap();
    let output = experiment(out.path(), &["--trials", "1", "--learning-rate", "1e45", "--no-progress"]);
    let (said, table) = (text(&output.stderr), text(&output.stdout));
    assert_eq!(output.status.code(), Some(SOFTWARE), "{said}");
    assert!(said.contains("no figures for") && said.contains("evenhand/"), "{said}");
    assert!(said.contains("seed-1.json: the model diverged in round"), "{said}");
    assert!(table.contains("Evenhand") && table.contains("report: "), "{table}");
}

#[test]
fn repeated_samples_are_noted() {
    let (out, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // 16 digits; 4 nodes need batches of 2 for 2 rounds and the one ahead.
    let mut images: Vec<u8> = [0x803u32, 16, 28, 28].iter().flat_map(|word| word.to_be_bytes()).collect();
    images.extend((0..16 * 28 * 28).map(|at| (at % 251) as u8));
    let mut labels: Vec<u8> = [0x801u32, 16].iter().flat_map(|word| word.to_be_bytes()).collect();
    labels.extend((0..16).map(|at| at % 10));
    std::fs::write(data.path().join("train-images-idx3-ubyte"), images).unwrap();
    std::fs::write(data.path().join("train-labels-idx1-ubyte"), labels).unwrap();
    let flags = "experiment --dataset mnist --strategy fedavg --trials 1 --nodes 4 --rounds 2 --k 2 --tested-nodes 2 --batch 2";
    let arguments: Vec<&str> = flags.split(' ').chain(["--data", data.path().to_str().unwrap()]).collect();
    let output = command(out.path(), &arguments).output().unwrap();
    let table = text(&output.stdout);
    assert!(table.contains("Samples are seen up to 2 times"), "{table}{}", text(&output.stderr));
}

#[test]
fn impossible_combinations_are_left_out_with_a_sentence() {
    let out = tempfile::tempdir().unwrap();
    for (flags, reason) in [
        (
            "compare fairness --dataset electricity --corruption heterogeneity",
            "electricity with heterogeneity, since it has no classes",
        ),
        (
            "compare class-ladder --dataset electricity",
            "electricity with heterogeneity, since it has no classes",
        ),
        (
            "compare away --dataset synthetic --strategy fedavg",
            "fedavg in the table away, which is about paper, paper-calibrated",
        ),
    ] {
        let output = command(out.path(), &flags.split(' ').collect::<Vec<_>>()).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(USAGE), "{said}");
        assert!(said.starts_with(&format!("left out: {reason}\n")), "{said}");
        assert!(said.contains("nothing is left of the table"), "{said}");
    }
    let flags = "compare sharpness --dataset synthetic,synthetic --corruption label-noise --no-run --json";
    let output = command(out.path(), &flags.split(' ').collect::<Vec<_>>()).output().unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let reasons = json["left_out"].as_array().unwrap();
    assert_eq!(reasons, &["label-noise in the table sharpness, which has bad data of its own"]);
}

#[test]
fn showing_without_running_writes_no_file() {
    let out = tempfile::tempdir().unwrap();
    for flags in ["experiment --no-run", "compare fairness --dataset synthetic --no-run"] {
        let output = command(out.path(), &flags.split(' ').collect::<Vec<_>>()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 0);
}

#[test]
fn a_reader_who_has_read_enough_is_no_failure() {
    let out = tempfile::tempdir().unwrap();
    let mut child = command(out.path(), &["experiment", "--no-run"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

#[test]
fn contradictions_and_missing_data_are_answered_with_a_sentence() {
    let out = tempfile::tempdir().unwrap();
    for (arguments, words) in [
        (&["experiment", "--k", "13"][..], "--k 13: between 1 and the 12 nodes"),
        (&["experiment", "--strategy", "evenhnd"], "no strategy is called \"evenhnd\""),
        (&["experiment", "--temperature", "0"], "--temperature 0: a number above 0"),
        (&["experiment", "--window", "4"], "--window 4: above the 4 tested nodes"),
        (&["experiment", "--nodes", "100000000"], "--nodes 100000000: at most 1000000 nodes"),
        (&["experiment", "--batch", "4000000000"], "--batch 4000000000: between 1 and 1000000 samples"),
        (&["experiment", "--batch", "1000000"], "may see 20000000 samples in all, not 732000000"),
        (&["experiment", "--dataset", "mnist"], "--data DIR"),
        (&["compare", "fairness", "--dataset", "mnist"], "--data DIR"),
    ] {
        let output = command(out.path(), arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(USAGE), "{arguments:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(words), "{arguments:?}: {}", text(&output.stderr));
    }
}
