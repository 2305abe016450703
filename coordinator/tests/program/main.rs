//! The commands of the program, with and without a running coordinator.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use evenhand_coordinator::config::CoordinatorConfig;
use evenhand_coordinator::control::{self, FederationStatus};
use evenhand_coordinator::store::Store;
use evenhand_link::Broker;
use evenhand_link::testing::free_port;
use evenhand_models::{LoadOptions, Model};
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::Phase;
use evenhand_testkit::coordinator_config::endless;
use evenhand_testkit::scripted_node::{NodeScript, ScriptedNode};
use tempfile::TempDir;

/// A folder with a configuration and a state.
struct CoordinatorSite {
    folder: TempDir,
    port: u16,
}

impl CoordinatorSite {
    fn new() -> Self {
        let site = Self { folder: TempDir::new().unwrap(), port: free_port() };
        let mut config = endless(site.state(), site.port);
        config.dashboard.enabled = false;
        fs::write(site.config(), toml::to_string(&config).unwrap()).unwrap();
        site
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("coordinator.toml")
    }

    fn broker(&self) -> Broker {
        Broker::parse(&format!("mqtt://127.0.0.1:{}", self.port)).unwrap()
    }

    fn start(&self) -> Child {
        let mut command = program();
        command.args(["run", "--config"]).arg(self.config()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    /// Runs a command on the state folder.
    fn on_state(&self, command: &str, more: &[&Path]) -> Output {
        program().arg(command).arg(self.state()).args(more).output().unwrap()
    }

    fn status(&self) -> FederationStatus {
        let output = self.on_state("status", &[Path::new("--json")]);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)))
    }

    /// Requests the status until it is as `expected`.
    fn wait_for(&self, expected: impl Fn(&FederationStatus) -> bool) -> FederationStatus {
        loop {
            let output = self.on_state("status", &[Path::new("--json")]);
            match serde_json::from_slice::<FederationStatus>(&output.stdout) {
                Ok(status) if status.process.is_some() && expected(&status) => return status,
                _ => std::thread::yield_now(),
            }
        }
    }
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_evenhand-coordinator"))
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The results with standard output into a closed pipe, and onto a full disk.
fn with_closed_pipe_and_full_disk(mut command: Command) -> [Output; 2] {
    let (reader, unread) = std::io::pipe().unwrap();
    drop(reader);
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    [Stdio::from(unread), Stdio::from(full)].map(|stdout| command.stdout(stdout).output().unwrap())
}

#[track_caller]
fn done(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", text(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[track_caller]
fn refused(output: &Output, code: i32, why: &str) {
    assert!(text(output).contains(why), "{}", text(output));
    assert_eq!(output.status.code(), Some(code));
}

/// Checks that the metadata of the exported model are right; returns its round.
fn check_export(site: &CoordinatorSite, name: &str) -> String {
    let file = site.folder.path().join(name);
    done(&site.on_state("export", &[Path::new("--output"), &file]));
    let model = Model::load(&fs::read(&file).unwrap(), &LoadOptions::default()).unwrap();
    let digest = &model.metadata()["evenhand.weights_sha256"];
    assert_eq!(digest, &Digest::of_weights(&model.initial_weights()).to_string());
    assert_eq!(model.metadata()["evenhand.federation"], "home");
    model.metadata()["evenhand.round"].clone()
}

#[test]
fn an_error_is_printed_once() {
    let site = CoordinatorSite::new();
    let check = |file: &Path| program().args(["check-config", "--config"]).arg(file).output().unwrap();
    let missing = check(&site.folder.path().join("missing.toml"));
    refused(&missing, 78, "cannot read");
    assert_eq!(text(&missing).matches("os error 2").count(), 1, "{}", text(&missing));
    fs::write(site.config(), "[federation]\nnodes_min = many\n").unwrap();
    let mistaken = check(&site.config());
    refused(&mistaken, 78, "nodes_min");
    assert_eq!(text(&mistaken).matches("nodes_min = many").count(), 1, "{}", text(&mistaken));
}

#[test]
fn the_user_name_of_the_coordinator_is_reserved() {
    let site = CoordinatorSite::new();
    let mut config = endless(site.state(), site.port);
    let secret = site.folder.path().join("secret");
    fs::write(&secret, "0123456789abcdef0123456789abcdef").unwrap();
    config.broker.secret_file = Some(secret);
    fs::write(site.config(), toml::to_string(&config).unwrap()).unwrap();
    let password =
        |node: &str| program().args(["password", "--config"]).arg(site.config()).arg(node).output().unwrap();
    assert_eq!(done(&password("meter-7")).trim().len(), 64);
    refused(&password("evenhand-coordinator"), 78, "give the node another one");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_reads_and_commands_a_running_coordinator() {
    let site = CoordinatorSite::new();
    refused(&site.on_state("status", &[]), 65, "there is no federation in");
    let mut running = site.start();
    let status = site.wait_for(|_| true);
    assert_eq!((status.phase.as_str(), status.process), ("enrolling", Some(running.id())));
    refused(&site.on_state("re-explore", &[]), 64, "not settled yet");
    let _nodes: Vec<ScriptedNode> = ["n0", "n1", "n2"]
        .map(|name| ScriptedNode::start(site.broker(), name, 1, NodeScript::AnswerAll))
        .into();
    site.wait_for(|status| status.phase == "exploiting");

    // A second coordinator must not use the state.
    let second = program().args(["run", "--config"]).arg(site.config()).output().unwrap();
    refused(&second, 75, "another process uses the state in");

    // The state can be read while it runs.
    let text = done(&site.on_state("status", &[]));
    assert!(text.starts_with("federation home: exploiting, round "), "{text}");
    assert!(done(&site.on_state("audit", &[])).contains(" rounds agree"));
    check_export(&site, "running.onnx");
    let page = site.folder.path().join("report.html");
    done(&site.on_state("report", &[Path::new("--output"), &page]));
    let page = fs::read_to_string(page).unwrap();
    assert_eq!(
        page.matches("<svg").count(),
        7,
        "standings, p-value, odds, mean wait, waits, losses, mean loss"
    );
    assert!(page.contains("Under way: ") && page.contains("<th scope=\"row\">n2</th>"));
    assert!(!page.contains("NaN") && !page.contains("http"));
    let copy = site.folder.path().join("copy");
    done(&site.on_state("backup", &[&copy]));
    assert_eq!(Store::open(&copy).unwrap().audit().unwrap().difference, None);
    refused(&site.on_state("backup", &[&copy]), 64, "name a new folder, such as");
    refused(&site.on_state("report", &[Path::new("--output"), Path::new("/proc/none")]), 70, "cannot write");
    refused(&site.on_state("export", &[Path::new("--output"), Path::new("/proc/none")]), 70, "cannot write");

    let round = site.status().round;
    done(&site.on_state("re-explore", &[]));
    site.wait_for(|status| status.round > round + 1);
    refused(&site.on_state("remove", &[Path::new("n9")]), 64, "there is no node n9 in this federation");
    let removed = done(&site.on_state("remove", &[Path::new("n2")]));
    assert!(removed.contains("; n2 is removed for good"), "{removed}");
    assert!(site.status().nodes[2].removed);
    assert!(done(&site.on_state("pause", &[])).starts_with("paused, round "));
    assert_eq!(site.status().phase, "paused");
    done(&site.on_state("resume", &[]));
    let round = site.status().round;
    site.wait_for(|status| status.round > round);

    // It stops in the open round, and resumes it.
    assert!(Command::new("kill").arg(running.id().to_string()).status().unwrap().success());
    assert_eq!(running.wait().unwrap().code(), Some(130));
    let stopped = site.status();
    assert_eq!(stopped.process, None);
    refused(&site.on_state("pause", &[]), 69, "no coordinator runs on this state");
    let mut running = site.start();
    site.wait_for(|status| status.round > stopped.round);
    assert!(done(&site.on_state("finish", &[])).starts_with("finished, round "));
    assert_eq!(running.wait().unwrap().code(), Some(0));
    assert_eq!(site.status().phase, "finished");
    assert!(done(&site.on_state("audit", &[])).contains(" rounds agree"));
    check_export(&site, "finished.onnx");
    let again = program().args(["run", "--config"]).arg(site.config()).output().unwrap();
    refused(&again, 0, "is finished; raise federation.rounds");
    let log = Store::open(&site.state()).unwrap().log().unwrap();
    let phases: Vec<Phase> = log.records().unwrap().map(|record| record.unwrap().phase).collect();
    let turns = phases.windows(2).filter(|pair| pair == &[Phase::Exploiting, Phase::Exploring]).count();
    assert_eq!(turns, 1, "it explored again after the command, and only then");
}

/// Limits the size of files, as a full disk would; the signal of the limit is ignored.
const SMALL_DISK: &str = "trap '' XFSZ; ulimit -f 8192; exec \"$0\" \"$@\"";

#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_it_stops_without_damage_and_resumes_with_free_space() {
    let site = CoordinatorSite::new();
    let _nodes: Vec<ScriptedNode> = ["n0", "n1", "n2"]
        .map(|name| ScriptedNode::start(site.broker(), name, 1, NodeScript::AnswerAll))
        .into();
    let mut small = Command::new("sh");
    small.args(["-c", SMALL_DISK, env!("CARGO_BIN_EXE_evenhand-coordinator"), "run", "--config"]);
    let ended = small.arg(site.config()).output().unwrap();
    refused(&ended, 65, "cannot save the state: the disk failed: File too large");
    assert!(!text(&ended).contains("damaged"), "{}", text(&ended));
    let full = site.status().round;
    assert!(full > 0);
    let mut running = site.start();
    site.wait_for(|status| status.round > full + 1);
    done(&site.on_state("finish", &[]));
    assert_eq!(running.wait().unwrap().code(), Some(0));
    assert!(done(&site.on_state("audit", &[])).contains(" rounds agree"));
}

#[test]
fn a_paused_federation_that_has_not_begun_can_begin() {
    let site = CoordinatorSite::new();
    let mut running = site.start();
    site.wait_for(|_| true);
    assert!(done(&site.on_state("pause", &[])).starts_with("paused, round 0 "));
    assert!(done(&site.on_state("pause", &[])).ends_with("it was paused already\n"));
    refused(&site.on_state("re-explore", &[]), 64, "not settled yet");
    done(&site.on_state("begin", &[]));
    done(&site.on_state("finish", &[]));
    assert_eq!(running.wait().unwrap().code(), Some(0));
}

/// Limits the open files; the program itself needs about half of them.
const FEW_FILES: &str = "ulimit -n 40; exec \"$0\" \"$@\"";

#[test]
fn silent_connections_are_closed_and_do_not_fill_the_log() {
    let site = CoordinatorSite::new();
    let log = site.folder.path().join("log");
    let mut few = Command::new("sh");
    few.args(["-c", FEW_FILES, env!("CARGO_BIN_EXE_evenhand-coordinator"), "run", "--config"]);
    let log_file = fs::File::create(&log).unwrap();
    let mut running = few.arg(site.config()).env_remove("RUST_LOG").stderr(log_file).spawn().unwrap();
    site.wait_for(|_| true);
    let silent: Vec<UnixStream> =
        (0..60).map(|_| UnixStream::connect(control::socket_path(&site.state())).unwrap()).collect();
    for mut stream in silent {
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "it received data");
    }
    done(&site.on_state("finish", &[]));
    assert_eq!(running.wait().unwrap().code(), Some(0));
    let log = fs::read_to_string(log).unwrap();
    let failures = log.lines().filter(|line| line.contains("control socket: accept failed")).count();
    assert!((1..1000).contains(&failures), "{failures} log lines");
}

#[test]
fn a_closed_pipe_is_no_error_and_a_full_disk_is_one() {
    let site = CoordinatorSite::new();
    let mut running = site.start();
    site.wait_for(|_| true);
    let mut status = program();
    status.arg("status").arg(site.state());
    let mut print_config = program();
    print_config.arg("print-config");
    for command in [status, print_config] {
        let [closed, full] = with_closed_pipe_and_full_disk(command);
        assert_eq!(text(&closed), "");
        done(&closed);
        refused(&full, 70, "evenhand-coordinator: cannot write to stdout: No space left on device");
    }
    done(&site.on_state("finish", &[]));
    assert_eq!(running.wait().unwrap().code(), Some(0));
}

#[test]
fn a_wrong_configuration_has_its_own_exit_code() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("wrong.toml");
    fs::write(&file, "[state]\nfolders = 1\n").unwrap();
    let output = program().args(["check-config", "--config"]).arg(&file).output().unwrap();
    refused(&output, 78, "unknown field `folders`");
    let output = program().arg("print-config").output().unwrap();
    assert_eq!(CoordinatorConfig::parse(&done(&output)).unwrap(), CoordinatorConfig::default());
}

/// A build without a GPU, or a machine without a driver, fails before the first round.
#[test]
fn an_unavailable_gpu_is_a_wrong_configuration() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("gpu.toml");
    fs::write(&file, "[contribution]\ndevice = \"gpu\"\n").unwrap();
    let mut command = program();
    command.args(["check-config", "--config"]).arg(&file);
    let none = folder.path().join("none.json");
    let output = command.env("VK_DRIVER_FILES", &none).env("VK_ICD_FILENAMES", &none).output().unwrap();
    refused(&output, 78, "contribution.device = gpu: ");
}

#[test]
fn a_port_that_is_taken_is_said() {
    let site = CoordinatorSite::new();
    let _taken = std::net::TcpListener::bind(("127.0.0.1", site.port)).unwrap();
    let ended = program().args(["run", "--config"]).arg(site.config()).output().unwrap();
    refused(&ended, 78, "choose another broker.listen");
}

#[test]
fn init_writes_a_configuration_that_holds_and_replaces_none() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("town.toml");
    let init = |more: &[&str]| {
        let mut command = program();
        command.args(["init", "--name", "town", "--output"]).arg(&file).args(more).stdin(Stdio::null());
        command.output().unwrap()
    };
    refused(&init(&["--broker", "embedded"]), 64, "--homes is missing");
    refused(&init(&["--broker", "embedded", "--homes", "1"]), 64, "2 to 5000 homes");
    refused(&init(&["--broker", "http://x", "--homes", "20"]), 78, "broker.url");
    let said = done(&init(&["--broker", "embedded", "--homes", "20"]));
    assert!(said.contains("no home waits longer than 9 rounds on average"), "{said}");
    done(&program().args(["check-config", "--config"]).arg(&file).output().unwrap());
    let config = CoordinatorConfig::load(&file).unwrap();
    assert_eq!((config.exploiting.k, config.continuous.worst_wait), (7, 9.0));
    assert_eq!(config.federation.round_interval_ms, 900_000);
    refused(&init(&["--broker", "embedded", "--homes", "20"]), 64, "is there already");
    let password = program().args(["password", "--config"]).arg(&file).arg("home-1").output().unwrap();
    assert_eq!(done(&password).trim().len(), 64);
}
