//! Joining by invitation: many nodes at once, a lost device, a new key of the coordinator, a revoked node.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use evenhand_coordinator::joining::{self, CoordinatorKeys, JoinGate, JoinPolicy};
use evenhand_coordinator::shell::{ConnectionOptions, Coordinator};
use evenhand_federation::{Federation, FederationConfig, InitialModel, Policy, Rules};
use evenhand_link::testing::{Mosquitto, free_port};
use evenhand_node::config::NodeConfig;
use evenhand_protocol::identity::{Digest, NodeId};
use evenhand_protocol::topic::{self, Channel};
use evenhand_seal::Entropy;
use evenhand_testkit::scripted_node::{NodeScript, ScriptedNode};
use evenhand_tests::houses::Houses;
use evenhand_tests::recorder::Recorder;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::time;

const NODES: usize = 200;

/// A coordinator's program with its folder.
struct InvitationSite {
    folder: TempDir,
    coordinator: Option<Child>,
}

impl Drop for InvitationSite {
    fn drop(&mut self) {
        self.kill();
    }
}

impl InvitationSite {
    fn new() -> Self {
        let site = Self { folder: TempDir::new().unwrap(), coordinator: None };
        let text = format!(
            "[federation]\nname = \"town\"\nnodes_min = {NODES}\n[broker]\nlisten = \"127.0.0.1:{}\"\n\
             [joining]\npolicy = \"invited\"\n[dashboard]\nenabled = false\n[state]\nfolder = {:?}\n",
            free_port(),
            site.path("state"),
        );
        fs::write(site.path("coordinator.toml"), text).unwrap();
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&mut self) {
        let log = File::options().create(true).append(true).open(self.path("log")).unwrap();
        let mut program = Command::new(env!("CARGO_BIN_EXE_coordinator"));
        program.args(["run", "--config"]).arg(self.path("coordinator.toml")).stderr(log);
        self.coordinator = Some(program.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap());
        while !self.path("state/control.sock").exists() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.coordinator.take() {
            let _ended = child.kill().and_then(|()| child.wait());
        }
        let _gone = fs::remove_file(self.path("state/control.sock"));
    }

    fn operate(&self, arguments: &[&str]) -> Output {
        let output = Command::new(env!("CARGO_BIN_EXE_coordinator")).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    fn state(&self) -> String {
        self.path("state").display().to_string()
    }

    /// The registry: what is known of every name.
    fn names(&self) -> BTreeMap<String, Value> {
        let output = self.operate(&["nodes", &self.state(), "--json"]);
        serde_json::from_slice(&output.stdout).unwrap()
    }

    async fn wait_until(&self, what: &str, holds: impl Fn(&BTreeMap<String, Value>) -> bool) {
        for _ in 0..600 {
            if holds(&self.names()) {
                return;
            }
            time::sleep(Duration::from_millis(500)).await;
        }
        panic!("{what}: {}", fs::read_to_string(self.path("log")).unwrap());
    }

    fn join(&self, invitation: &Path, name: &str) -> NodeConfig {
        let config = self.path(&format!("{name}.toml"));
        let mut program = Command::new(env!("CARGO_BIN_EXE_node"));
        program.arg("join").arg(invitation).arg("--config").arg(&config).arg("--state").arg(self.path(name));
        let output = program.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        NodeConfig::load(&config).unwrap()
    }
}

fn joined(names: &BTreeMap<String, Value>) -> usize {
    names.values().filter(|entry| !entry["key"].is_null() && entry["invitation"].is_null()).count()
}

/// Two hundred nodes join a coordinator that runs, by one script; then one device is lost, and the coordinator's key replaced,
/// and the others do not notice.
#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_nodes_join_from_invitations_in_one_script() {
    let mut site = InvitationSite::new();
    site.start();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/join-many");
    let output = Command::new(script)
        .arg(site.path("coordinator.toml"))
        .args([&NODES.to_string(), &site.path("nodes").display().to_string()])
        .env("COORDINATOR", env!("CARGO_BIN_EXE_coordinator"))
        .env("NODE", env!("CARGO_BIN_EXE_node"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((site.names().len(), joined(&site.names())), (NODES, 0), "invited");

    // A coordinator that is killed remembers them.
    site.kill();
    site.start();
    let config =
        |number: usize| NodeConfig::load(&site.path(&format!("nodes/meter-{number:03}.toml"))).unwrap();
    let nodes = Houses::start((1..=NODES).map(config).collect());
    site.wait_until("all join", |names| joined(names) == NODES).await;
    let before = site.names();

    // Another device under the name of a lost one; the codes are used up.
    let again = site.operate(&[
        "invite",
        "--config",
        &site.path("coordinator.toml").display().to_string(),
        "--again",
        "meter-007",
    ]);
    let line = String::from_utf8(again.stdout).unwrap();
    let invitation = site.path("again.invitation");
    fs::write(&invitation, line).unwrap();
    let other = Houses::start(vec![site.join(&invitation, "other-device")]);
    site.wait_until("the other device", |names| names["meter-007"]["key"] != before["meter-007"]["key"])
        .await;
    let after = site.names();
    assert_eq!(joined(&after), NODES);
    assert!(after.iter().all(|(name, entry)| name == "meter-007" || *entry == before[name]));

    // A new key reaches every node in a sealed message, and those that start later learn it from the old one.
    let old = config(1).node.coordinator_key.unwrap().to_string();
    let rotated = site.operate(&["rotate-key", &site.state()]);
    let new = String::from_utf8(rotated.stdout).unwrap().trim().to_owned();
    assert_ne!(new, old);
    let learnt = |number: usize| {
        let file = site.path(&format!("nodes/meter-{number:03}/coordinator"));
        fs::read_to_string(file).is_ok_and(|text| text.starts_with(&new))
    };
    for _ in 0..600 {
        if (1..=NODES).filter(|number| *number != 7).all(learnt) {
            break;
        }
        time::sleep(Duration::from_millis(500)).await;
    }
    let missing: Vec<usize> = (1..=NODES).filter(|number| *number != 7 && !learnt(*number)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(site.names(), after);
    nodes.stop().await;
    other.stop().await;
}

/// A federation of the nodes a, b and c that goes on and on.
fn endless() -> Federation {
    let mut settings = FederationConfig::default();
    settings.federation.policy = Policy::Paper;
    settings.federation.nodes_min = 3;
    settings.federation.rounds = 1_000_000;
    settings.federation.round_deadline_ms = 3_600_000;
    settings.exploring.rounds_max = 1_000_000;
    settings.exploring.window = 100_000;
    settings.exploring.tested_nodes = 1;
    settings.exploiting.k = 1;
    let model = InitialModel {
        graph: Digest::of(b"graph"),
        onnx: vec![7; 1_000].into(),
        weights: vec![1.0; 500].into(),
    };
    Federation::new(Rules::new(settings).unwrap(), model)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_node_receives_nothing_in_a_hundred_rounds_and_the_others_do_not_notice() {
    let broker = Mosquitto::start();
    let federation = endless();
    let name = federation.rules().federation.name.clone();
    let keys = CoordinatorKeys::generate(&mut Entropy::from_seed([1; 32]));
    let gate = joining::sealing(name.clone(), keys, JoinGate::in_memory(JoinPolicy::Open)).unwrap();
    let connection =
        ConnectionOptions { sealing: Some(Arc::clone(&gate)), ..ConnectionOptions::new(broker.broker()) };
    let coordinator = Coordinator::connect(connection, federation).await.unwrap();
    let handle = coordinator.handle();
    let (sender, mut rounds) = mpsc::unbounded_channel();
    let running = tokio::spawn(coordinator.run(sender));
    let nodes: Vec<ScriptedNode> = ["a", "b", "c"]
        .map(|name| ScriptedNode::start(broker.broker(), name, 1, NodeScript::AnswerAll))
        .into();
    for _ in 0..10 {
        assert_eq!(rounds.recv().await.unwrap().evidence.round.arrived(), 3);
    }

    let revoked = NodeId::new("b").unwrap();
    handle.revoke(revoked.clone()).await.unwrap();
    // A round that was open is closed without it, and what was on its way has passed.
    while rounds.recv().await.unwrap().evidence.round.arrived() != 2 {}
    rounds.recv().await.unwrap();
    let recorder = Recorder::start(&broker.broker()).await;
    for _ in 0..100 {
        let round = rounds.recv().await.unwrap().evidence.round.clone();
        let asked: Vec<&str> = round.asked().map(|row| row.node.as_str()).collect();
        assert_eq!((asked, round.arrived()), (vec!["a", "c"], 2), "round {}", round.round);
        assert!(round.nodes.iter().all(|row| row.refusals.is_empty()));
    }
    let packets = recorder.stop();
    let to = |node: &NodeId| {
        let topics = [Channel::Task, Channel::Account].map(|channel| topic::node(&name, node, channel));
        packets.iter().filter(|packet| topics.contains(&packet.topic)).count()
    };
    assert_eq!(to(&revoked), 0);
    assert!(to(&NodeId::new("a").unwrap()) >= 200);

    // It starts again, and is not heard.
    let again = ScriptedNode::start(broker.broker(), "b", 2, NodeScript::AnswerAll);
    for _ in 0..20 {
        assert_eq!(rounds.recv().await.unwrap().evidence.round.arrived(), 2);
    }
    assert_eq!(gate.with(|seal, _| seal.secured()), 2);
    handle.stop();
    running.await.unwrap().unwrap();
    drop((nodes, again));
}
