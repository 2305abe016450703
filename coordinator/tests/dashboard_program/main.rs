//! The dashboard of the program: as configured, after a crash, and with its address in use.
#![allow(clippy::unwrap_used)]

mod failed;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use evenhand_coordinator::config::CoordinatorConfig;
use evenhand_link::Broker;
use evenhand_link::testing::free_port;
use evenhand_testkit::coordinator_config::endless;
use evenhand_testkit::scripted_node::{NodeScript, ScriptedNode};
use serde_json::Value;
use tempfile::TempDir;

const TOKEN: &str = "correct horse battery staple";

/// A configuration in `folder`, with a dashboard on `port`, and the program running on it.
fn start(folder: &Path, broker_port: u16, port: u16) -> Child {
    start_with(folder, broker_port, port, |_| {})
}

/// The same with a changed configuration.
fn start_with(
    folder: &Path,
    broker_port: u16,
    port: u16,
    change: impl FnOnce(&mut CoordinatorConfig),
) -> Child {
    let token = folder.join("token");
    fs::write(&token, TOKEN).unwrap();
    let mut config = endless(folder.join("state"), broker_port);
    config.dashboard.listen = ([127, 0, 0, 1], port).into();
    config.dashboard.token_file = Some(token);
    change(&mut config);
    let file = folder.join("coordinator.toml");
    fs::write(&file, toml::to_string(&config).unwrap()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenhand-coordinator"));
    command.args(["run", "--config"]).arg(file).env_remove("RUST_LOG").stderr(Stdio::piped()).spawn().unwrap()
}

/// The body of a response, if there is one.
fn request(port: u16, method: &str, path: &str) -> Option<Value> {
    serde_json::from_str(answer(port, method, path)?.split_once("\r\n\r\n")?.1).ok()
}

/// A response with its head, if there is one.
fn answer(port: u16, method: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// Requests `path` until the response is as expected.
fn wait_for(port: u16, path: &str, expected: impl Fn(&Value) -> bool) -> Value {
    loop {
        match request(port, "GET", path) {
            Some(answer) if expected(&answer) => return answer,
            _ => std::thread::yield_now(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_program_shows_earlier_rounds_and_one_without_its_address_runs_without_dashboard() {
    let folder = TempDir::new().unwrap();
    let (broker_port, port) = (free_port(), free_port());
    let mut running = start(folder.path(), broker_port, port);
    wait_for(port, "/healthz", |health| health["phase"] == "enrolling");
    let broker = Broker::parse(&format!("mqtt://127.0.0.1:{broker_port}")).unwrap();
    let _nodes =
        ["n0", "n1", "n2"].map(|name| ScriptedNode::start(broker.clone(), name, 1, NodeScript::AnswerAll));
    let shown = wait_for(port, "/api/v1/federation", |federation| federation["round"].as_u64() > Some(6));
    running.kill().unwrap();
    running.wait().unwrap();

    let mut running = start(folder.path(), broker_port, port);
    let response = wait_for(port, "/api/v1/rounds", |response| {
        response["rounds"].as_array().is_some_and(|all| all.len() > 6)
    });
    let rounds: Vec<u64> =
        response["rounds"].as_array().unwrap().iter().map(|round| round["to"].as_u64().unwrap()).collect();
    assert!(rounds.iter().copied().eq(1..=rounds.len() as u64), "{rounds:?}");
    assert!(rounds.len() as u64 >= shown["round"].as_u64().unwrap() - 1);
    assert_eq!(request(port, "POST", "/api/v1/commands/pause").unwrap()["accepted"], "pause");
    wait_for(port, "/healthz", |health| health["phase"] == "paused");

    // Another federation whose dashboard cannot listen logs that, and runs.
    let other = TempDir::new().unwrap();
    let other_port = free_port();
    let mut second = start(other.path(), other_port, port);
    let mut log = BufReader::new(second.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = log.find(|line| line.contains("dashboard not started")).expect("a log line");
    assert!(line.contains("choose another dashboard.listen"), "{line}");
    log.find(|line| line.contains("connected to broker")).expect("it runs");
    for process in [&mut running, &mut second] {
        process.kill().unwrap();
        process.wait().unwrap();
    }
}
