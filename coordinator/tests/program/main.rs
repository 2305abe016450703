//! The program as an operator uses it, running and not.
#![allow(clippy::unwrap_used)]

mod endless;
#[allow(dead_code)]
#[path = "../coordinator/node.rs"]
mod node;

use std::fs;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use evenhand_coordinator::config::Config;
use evenhand_coordinator::control::{self, Status};
use evenhand_coordinator::store::Store;
use evenhand_link::Broker;
use evenhand_link::testing::free_port;
use evenhand_models::{LoadOptions, Model};
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::Phase;
use tempfile::TempDir;

use self::node::{Behaviour, Node};

/// A folder with a configuration, and the program to run on it.
struct Site {
    folder: TempDir,
    port: u16,
}

impl Site {
    fn new() -> Self {
        let site = Self { folder: TempDir::new().unwrap(), port: free_port() };
        let mut config = endless::config(site.state(), site.port);
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

    fn status(&self) -> Status {
        let output = self.on_state("status", &[Path::new("--json")]);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", words(&output)))
    }

    /// Asks until the federation stands as wanted.
    fn wait_for(&self, wanted: impl Fn(&Status) -> bool) -> Status {
        loop {
            let output = self.on_state("status", &[Path::new("--json")]);
            match serde_json::from_slice::<Status>(&output.stdout) {
                Ok(status) if status.process.is_some() && wanted(&status) => return status,
                _ => std::thread::yield_now(),
            }
        }
    }
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_evenhand-coordinator"))
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Runs a program whose output goes to a pipe that nobody reads, and then to a disk that is full.
fn unread_and_full(mut command: Command) -> [Output; 2] {
    let (reader, unread) = std::io::pipe().unwrap();
    drop(reader);
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    [Stdio::from(unread), Stdio::from(full)].map(|stdout| command.stdout(stdout).output().unwrap())
}

#[track_caller]
fn done(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", words(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[track_caller]
fn refused(output: &Output, code: i32, why: &str) {
    assert!(words(output).contains(why), "{}", words(output));
    assert_eq!(output.status.code(), Some(code));
}

/// The exported model knows what it is, and is what it says.
fn check_export(site: &Site, name: &str) -> String {
    let file = site.folder.path().join(name);
    done(&site.on_state("export", &[Path::new("--output"), &file]));
    let model = Model::load(&fs::read(&file).unwrap(), &LoadOptions::default()).unwrap();
    let said = &model.metadata()["evenhand.weights_sha256"];
    assert_eq!(said, &Digest::of_weights(&model.initial_weights()).to_string());
    assert_eq!(model.metadata()["evenhand.federation"], "home");
    model.metadata()["evenhand.round"].clone()
}

#[test]
fn what_is_wrong_is_said_once() {
    let site = Site::new();
    let check = |file: &Path| program().args(["check-config", "--config"]).arg(file).output().unwrap();
    let missing = check(&site.folder.path().join("missing.toml"));
    refused(&missing, 78, "cannot read");
    assert_eq!(words(&missing).matches("os error 2").count(), 1, "{}", words(&missing));
    fs::write(site.config(), "[federation]\nnodes_min = many\n").unwrap();
    let mistaken = check(&site.config());
    refused(&mistaken, 78, "nodes_min");
    assert_eq!(words(&mistaken).matches("nodes_min = many").count(), 1, "{}", words(&mistaken));
}

#[test]
fn the_coordinators_name_is_no_nodes() {
    let site = Site::new();
    let mut config = endless::config(site.state(), site.port);
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
async fn an_operator_watches_and_steers_it() {
    let site = Site::new();
    refused(&site.on_state("status", &[]), 65, "there is no federation in");
    let mut running = site.start();
    let status = site.wait_for(|_| true);
    assert_eq!((status.phase.as_str(), status.process), ("enrolling", Some(running.id())));
    refused(&site.on_state("re-explore", &[]), 64, "not settled yet");
    let _nodes: Vec<Node> =
        ["n0", "n1", "n2"].map(|name| Node::start(site.broker(), name, 1, Behaviour::Obeys)).into();
    site.wait_for(|status| status.phase == "exploiting");

    // A second one must not touch the state.
    let second = program().args(["run", "--config"]).arg(site.config()).output().unwrap();
    refused(&second, 75, "another process uses the state in");

    // While it runs, everything can be read.
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
    refused(&site.on_state("backup", &[&copy]), 64, "exists");

    let round = site.status().round;
    done(&site.on_state("re-explore", &[]));
    site.wait_for(|status| status.round > round + 1);
    refused(&site.on_state("remove", &[Path::new("n9")]), 64, "there is no node n9 in this federation");
    done(&site.on_state("remove", &[Path::new("n2")]));
    assert!(site.status().nodes[2].removed);
    assert!(done(&site.on_state("pause", &[])).starts_with("paused, round "));
    assert_eq!(site.status().phase, "paused");
    done(&site.on_state("resume", &[]));
    let round = site.status().round;
    site.wait_for(|status| status.round > round);

    // It ends where it stands, and goes on from there.
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
    let log = Store::open(&site.state()).unwrap().log().unwrap();
    let phases: Vec<Phase> = log.records().unwrap().map(|record| record.unwrap().phase).collect();
    let turns = phases.windows(2).filter(|pair| pair == &[Phase::Exploiting, Phase::Exploring]).count();
    assert_eq!(turns, 1, "it explored anew when it was told to, and only then");
}

/// The program may write files up to this size, as if the disk were full then; the signal that comes with it is not heeded.
const SMALL_DISK: &str = "trap '' XFSZ; ulimit -f 8192; exec \"$0\" \"$@\"";

#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_it_ends_without_damage_and_goes_on_when_there_is_room() {
    let site = Site::new();
    let _nodes: Vec<Node> =
        ["n0", "n1", "n2"].map(|name| Node::start(site.broker(), name, 1, Behaviour::Obeys)).into();
    let mut small = Command::new("sh");
    small.args(["-c", SMALL_DISK, env!("CARGO_BIN_EXE_evenhand-coordinator"), "run", "--config"]);
    let ended = small.arg(site.config()).output().unwrap();
    refused(&ended, 65, "cannot save the state: the disk failed: File too large");
    assert!(!words(&ended).contains("damaged"), "{}", words(&ended));
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
    let site = Site::new();
    let mut running = site.start();
    site.wait_for(|_| true);
    assert!(done(&site.on_state("pause", &[])).starts_with("paused, round 0 "));
    refused(&site.on_state("re-explore", &[]), 64, "not settled yet");
    done(&site.on_state("begin", &[]));
    done(&site.on_state("finish", &[]));
    assert_eq!(running.wait().unwrap().code(), Some(0));
}

/// The program may open so many files; it needs about half of them for itself.
const FEW_FILES: &str = "ulimit -n 40; exec \"$0\" \"$@\"";

#[test]
fn connections_that_say_nothing_are_closed_and_do_not_fill_the_log() {
    let site = Site::new();
    let log = site.folder.path().join("log");
    let mut few = Command::new("sh");
    few.args(["-c", FEW_FILES, env!("CARGO_BIN_EXE_evenhand-coordinator"), "run", "--config"]);
    let log_file = fs::File::create(&log).unwrap();
    let mut running = few.arg(site.config()).env_remove("RUST_LOG").stderr(log_file).spawn().unwrap();
    site.wait_for(|_| true);
    let mute: Vec<UnixStream> =
        (0..60).map(|_| UnixStream::connect(control::socket(&site.state())).unwrap()).collect();
    for mut stream in mute {
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "it was told something");
    }
    done(&site.on_state("finish", &[]));
    assert_eq!(running.wait().unwrap().code(), Some(0));
    let log = fs::read_to_string(log).unwrap();
    let complaints = log.lines().filter(|line| line.contains("an operator could not be heard")).count();
    assert!((1..1000).contains(&complaints), "{complaints} complaints");
}

#[test]
fn a_reader_that_is_gone_is_no_failure_and_a_full_disk_is_one() {
    let site = Site::new();
    let mut running = site.start();
    site.wait_for(|_| true);
    let mut status = program();
    status.arg("status").arg(site.state());
    let mut print_config = program();
    print_config.arg("print-config");
    for command in [status, print_config] {
        let [unread, full] = unread_and_full(command);
        assert_eq!(words(&unread), "");
        done(&unread);
        refused(&full, 70, "evenhand-coordinator: cannot write to stdout: No space left on device");
    }
    done(&site.on_state("finish", &[]));
    assert_eq!(running.wait().unwrap().code(), Some(0));
}

#[test]
fn a_wrong_configuration_is_told_by_its_exit_code() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("wrong.toml");
    fs::write(&file, "[state]\nfolders = 1\n").unwrap();
    let output = program().args(["check-config", "--config"]).arg(&file).output().unwrap();
    refused(&output, 78, "unknown field `folders`");
    let output = program().arg("print-config").output().unwrap();
    assert_eq!(Config::parse(&done(&output)).unwrap(), Config::default());
}

/// A build without a GPU, or a machine without a driver, says so before a round is lost.
#[test]
fn a_gpu_that_cannot_be_had_is_a_wrong_configuration() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("gpu.toml");
    fs::write(&file, "[contribution]\ndevice = \"gpu\"\n").unwrap();
    let mut command = program();
    command.args(["check-config", "--config"]).arg(&file);
    let none = folder.path().join("none.json");
    let output = command.env("VK_DRIVER_FILES", &none).env("VK_ICD_FILENAMES", &none).output().unwrap();
    refused(&output, 78, "contribution.device = gpu: ");
}
