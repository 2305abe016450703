//! `kill -9` at random points: the program resumes bit for bit as if it had not been killed.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use evenhand_coordinator::config::CoordinatorConfig;
use evenhand_coordinator::store::Store;
use evenhand_fairness::SamplerKind;
use evenhand_federation::{ClosedRound, NodeRound, Policy, Tick};
use evenhand_link::testing::Mosquitto;
use evenhand_protocol::message::Phase;
use evenhand_testkit::scripted_node::{NodeScript, ScriptedNode};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;

const NODES: u32 = 5;
const ROUNDS: u32 = 90;
/// The first of them, in which every node is asked.
const EXPLORING: u32 = 7;
/// Runs, and kills of each.
const RUNS: u64 = 3;
const KILLS: u32 = 7;

fn config(broker: &Mosquitto, state: &Path) -> CoordinatorConfig {
    let mut config = CoordinatorConfig::default();
    config.federation.policy = Policy::Paper;
    config.federation.nodes_min = NODES;
    config.federation.rounds = ROUNDS;
    // Every drawn node answers, so that the same updates arrive in every run.
    config.federation.round_deadline_ms = 3_600_000;
    config.exploring.tested_nodes = 2;
    config.exploring.window = 6;
    config.exploring.rounds_max = EXPLORING;
    config.exploiting.k = 2;
    config.exploiting.temperature = 0.05;
    config.exploiting.sampler = SamplerKind::Credit;
    config.exploiting.drift_test_every = 10;
    config.exploiting.drift_test_window = 2;
    config.broker.url = broker.url();
    config.dashboard.enabled = false;
    config.state.folder = state.to_owned();
    config
}

/// The result of a run, without times and refusals of repeated messages.
#[derive(Debug, PartialEq)]
struct KillRunResult {
    model: String,
    records: Vec<ClosedRound>,
}

fn result(state: &Path) -> KillRunResult {
    let store = Store::open(state).unwrap();
    let federation = store.federation().unwrap();
    assert_eq!(federation.phase(), Phase::Finished);
    let audit = store.audit().unwrap();
    assert_eq!((audit.recomputed, audit.difference), (ROUNDS, None));
    let timeless = |record: ClosedRound| ClosedRound {
        opened: Tick(0),
        closed: Tick(0),
        nodes: record.nodes.into_iter().map(|node| NodeRound { refusals: BTreeMap::new(), ..node }).collect(),
        unknown_refusals: BTreeMap::new(),
        ..record
    };
    let log = store.log().unwrap();
    let records = log.records().unwrap().map(|record| timeless(record.unwrap())).collect();
    KillRunResult { model: federation.weights().digest().to_string(), records }
}

fn coordinator(config: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_evenhand-coordinator"))
        .args(["run", "--config"])
        .arg(config)
        .env("RUST_LOG", "info")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Kills the program `then` after it has closed so many rounds.
fn kill_after(mut program: Child, rounds: u32, then: Duration) {
    let log = BufReader::new(program.stderr.take().unwrap());
    let mut read = Vec::new();
    let mut lines = log.lines();
    let mut closed = 0;
    while closed < rounds {
        let line =
            lines.next().unwrap_or_else(|| panic!("it ended before it could be killed: {read:#?}")).unwrap();
        closed += u32::from(line.contains("round closed"));
        read.push(line);
    }
    thread::sleep(then);
    program.kill().unwrap();
    assert!(!program.wait().unwrap().success(), "it ended before it could be killed");
}

/// A complete run over a broker of its own, which survives the kills as the nodes do.
async fn run(kills: u32, seed: u64) -> KillRunResult {
    let broker = Mosquitto::start();
    let folder = TempDir::new().unwrap();
    let (state, file) = (folder.path().join("state"), folder.path().join("coordinator.toml"));
    fs::write(&file, toml::to_string(&config(&broker, &state)).unwrap()).unwrap();
    let nodes: Vec<ScriptedNode> = (0..NODES)
        .map(|number| ScriptedNode::start(broker.broker(), &format!("n{number}"), 1, NodeScript::AnswerAll))
        .collect();
    tokio::task::spawn_blocking(move || {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut closed = 0;
        for _ in 0..kills {
            // Sometimes before the first round after the start, or before it has read its state.
            let rounds = rng.random_range(0..9);
            closed += rounds;
            kill_after(coordinator(&file), rounds, Duration::from_micros(rng.random_range(0..20_000)));
        }
        assert!(kills == 0 || closed > EXPLORING, "it must be killed in both phases");
        let ended = coordinator(&file).wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    })
    .await
    .unwrap();
    for node in nodes {
        node.finish().await;
    }
    result(&state)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_killed_repeatedly_ends_as_one_that_was_not_killed() {
    let undisturbed = run(0, 0).await;
    let phases: Vec<Phase> = undisturbed.records.iter().map(|record| record.phase).collect();
    assert!(phases.contains(&Phase::Exploring) && phases.contains(&Phase::Exploiting));
    for seed in 1..=RUNS {
        let disturbed = run(KILLS, seed).await;
        for (disturbed, undisturbed) in disturbed.records.iter().zip(&undisturbed.records) {
            assert_eq!(disturbed, undisturbed, "seed {seed}");
        }
        assert_eq!(disturbed, undisturbed, "seed {seed}");
    }
}
