//! The command line of the demo.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const INTERRUPTED: i32 = 130;
const USAGE: i32 = 64;

fn fleet(report: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenhand-fleet"));
    command.args(arguments).arg("--report").arg(report);
    command
}

fn finished(report: &Path, arguments: &[&str]) -> Output {
    fleet(report, arguments).output().unwrap()
}

/// A small fleet in virtual time, as JSON.
fn simulated(seed: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [
        "--transport",
        "memory",
        "--nodes",
        "6",
        "--rounds",
        "30",
        "--seed",
        seed,
        "--json",
        "--no-progress",
    ];
    let output = finished(&folder.path().join("report.html"), &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn without_timings(mut json: Value) -> String {
    let object = json.as_object_mut().unwrap();
    for name in ["seconds_training", "seconds_fairness"] {
        object.remove(name).unwrap();
    }
    json.to_string()
}

#[test]
fn nodes_can_be_processes_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let arguments =
        ["--processes", "--nodes", "3", "--rounds", "12", "--window", "4", "--json", "--no-progress"];
    let output = finished(&folder.path().join("report.html"), &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((json["rounds"].as_u64(), json["nodes"].as_array().unwrap().len()), (Some(12), 3));
    assert!(json["seconds_training"].as_f64().unwrap() > 0.0, "they said how long they trained");
}

#[test]
fn the_same_seed_gives_the_same_json_and_another_seed_another() {
    let first = without_timings(simulated("5"));
    assert_eq!(first, without_timings(simulated("5")));
    assert_ne!(first, without_timings(simulated("6")));
}

#[test]
fn wrong_values_are_one_sentence_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.html");
    let cases: [(&[&str], &str); 11] = [
        (&["--k", "13"], "k = 13 does not fit 12 nodes; choose --k from 1 to 12"),
        (&["--k", "0"], "k = 0 does not fit 12 nodes; choose --k from 1 to 12"),
        (
            &["--window", "4", "--tested-nodes", "4"],
            "window = 4 is not above tested-nodes = 4; raise --window or lower --tested-nodes",
        ),
        (
            &["--tested-nodes", "20", "--window", "30"],
            "tested-nodes = 20 does not fit 12 nodes; choose --tested-nodes from 1 to 12",
        ),
        (&["--alpha", "1.5"], "alpha = 1.5 is no probability; choose --alpha above 0 and below 1"),
        (&["--temperature", "0"], "temperature = 0 is not positive; choose e.g. --temperature 0.02"),
        (&["--nodes", "1"], "nodes = 1 is no fleet; choose --nodes from 2 to 100000"),
        (&["--rounds", "0"], "rounds = 0 leaves nothing to do; choose --rounds 1 or more"),
        (
            &["--transport", "memory", "--broker", "mqtt://127.0.0.1"],
            "--broker is for MQTT; drop it or choose --transport mqtt",
        ),
        (
            &["--transport", "memory", "--processes"],
            "--processes needs MQTT between them; drop it or choose --transport mqtt",
        ),
        (&["--broker", "http://127.0.0.1"], "mqtt://"),
    ];
    for (arguments, sentence) in cases {
        let output = finished(&report, arguments);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(USAGE), "{arguments:?}: {stderr}");
        assert!(stderr.contains(sentence), "{arguments:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
        assert!(output.stdout.is_empty() && !report.exists());
    }
}

#[test]
fn unknown_flags_and_words_are_usage_errors_too() {
    for arguments in
        [&["--bogus"][..], &["--codec", "gzip"], &["--sampler", "dice"], &["--transport", "pigeon"]]
    {
        let output = Command::new(env!("CARGO_BIN_EXE_evenhand-fleet")).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(USAGE), "{arguments:?}");
    }
}

#[test]
fn help_lists_the_exit_codes() {
    let all = ["0", "64", "65", "69", "70", "130"];
    let commands = [None, Some("demo"), Some("experiment"), Some("paper")].map(|command| (command, &all[..]));
    let without_broker: &[&str] = &["0", "64", "65", "70"];
    for (command, codes) in commands.into_iter().chain([(Some("data"), without_broker)]) {
        let mut program = Command::new(env!("CARGO_BIN_EXE_evenhand-fleet"));
        let output = program.args(command).arg("--help").output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success());
        for code in codes {
            assert!(
                help.lines().any(|line| line.trim_start().starts_with(&format!("{code} "))),
                "{command:?}, {code}: {help}"
            );
        }
    }
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let output = finished(&folder.path().join("missing/report.html"), &["--transport", "memory"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(USAGE), "{stderr}");
    assert!(stderr.contains("choose another --report"), "{stderr}");
}

#[test]
fn ctrl_c_ends_with_the_results_so_far() {
    for transport in ["memory", "mqtt"] {
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("report.html");
        let mut child =
            fleet(&report, &["--transport", transport, "--nodes", "4", "--rounds", "1000000", "--json"])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
        // The first line on stderr says that a round is done.
        let mut line = String::new();
        BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("round 1 of 1000000"), "{line}");
        let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(INTERRUPTED), "{transport}");
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["ended"], "interrupted");
        let rounds = json["rounds"].as_u64().unwrap();
        assert!((1..1_000_000).contains(&rounds), "{rounds}");
        let page = std::fs::read_to_string(&report).unwrap();
        assert!(page.contains(&format!("Interrupted: {rounds} of 1000000 rounds were done.")));
    }
}
