//! The two programs, each configured by what it prints or asks for, find each other.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use evenhand_link::testing::free_port;
use serde_json::Value;
use tempfile::TempDir;

/// A folder in which both programs run.
struct Site {
    folder: TempDir,
    /// Killed at the end.
    running: Vec<Child>,
}

impl Drop for Site {
    fn drop(&mut self) {
        for child in &mut self.running {
            let _ended = child.kill().and_then(|()| child.wait());
        }
    }
}

fn coordinator() -> Command {
    Command::new(env!("CARGO_BIN_EXE_coordinator"))
}

fn node() -> Command {
    Command::new(env!("CARGO_BIN_EXE_node"))
}

fn printed(mut program: Command) -> String {
    let output = program.arg("print-config").output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// A printed configuration with another value for a setting that is shown in it; the first one, since sections of optional
/// brokers show the same keys.
fn with(text: &str, shown: &str, setting: &str) -> String {
    assert!(text.contains(shown), "{shown:?} is shown");
    text.replacen(shown, setting, 1)
}

/// The printed defaults of both, but for the port, which another test may use.
fn defaults(port: u16) -> (String, String) {
    let ours = printed(coordinator());
    let ours = with(&ours, "# listen = \"127.0.0.1:1883\"", &format!("listen = \"127.0.0.1:{port}\""));
    let url = format!("url = \"mqtt://127.0.0.1:{port}\"");
    (ours, with(&printed(node()), "# url = \"mqtt://127.0.0.1:1883\"", &url))
}

impl Site {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap(), running: Vec::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Starts a program; what it logs goes to `name.log`.
    fn start(&mut self, mut program: Command, name: &str, config: &Path) {
        let log = File::create(self.path(&format!("{name}.log"))).unwrap();
        program.args(["run", "--config"]).arg(config).current_dir(self.folder.path()).stderr(log);
        self.running.push(program.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap());
    }

    fn log(&self, name: &str) -> String {
        fs::read_to_string(self.path(&format!("{name}.log"))).unwrap()
    }

    /// What the coordinator says of its federation, once it runs.
    fn status(&self) -> Option<Value> {
        let state = self.path("evenhand-state");
        let output = coordinator().arg("status").arg(state).arg("--json").output().unwrap();
        serde_json::from_slice(&output.stdout).ok()
    }

    /// Starts the coordinator, which is to begin with the first node it knows.
    fn coordinate(&mut self, config: &str) {
        let config = self.write("coordinator.toml", config);
        self.start(coordinator(), "coordinator", &config);
        self.wait_until("coordinator", |status| !status["process"].is_null());
        let begun = coordinator().arg("begin").arg(self.path("evenhand-state")).output().unwrap();
        assert!(begun.status.success(), "{}", said(&begun));
    }

    /// Waits until a node has been given the model: a program that ends, or a node that is refused, never gets there.
    fn takes_part(&mut self, name: &str) {
        let given = |status: &Value| match &status["nodes"].as_array().unwrap()[..] {
            [node] => node["id"] == name && node["drawn"] != 0,
            _ => false,
        };
        self.wait_until(name, given);
    }

    fn wait_until(&mut self, name: &str, holds: impl Fn(&Value) -> bool) {
        while !self.status().as_ref().is_some_and(&holds) {
            let ended = self.running.iter_mut().any(|child| child.try_wait().unwrap().is_some());
            let (ours, theirs) = (self.log("coordinator"), self.log(name));
            assert!(!ended && !theirs.contains("no connection to the broker"), "{ours}{theirs}");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn the_default_node_joins_the_default_coordinator() {
    let mut site = Site::new();
    let (ours, theirs) = defaults(free_port());
    site.coordinate(&ours);
    let config = site.write("node.toml", &theirs);
    site.start(node(), "meter-1", &config);
    site.takes_part("meter-1");
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn beyond_this_machine_a_node_joins_by_its_invitation_and_not_without_its_password() {
    let mut site = Site::new();
    let port = free_port();
    let (ours, theirs) = defaults(port);
    let beyond = format!("listen = \"0.0.0.0:{port}\"");
    let ours = with(&ours, &format!("listen = \"127.0.0.1:{port}\""), &beyond);

    // The coordinator does not start, and says what to do.
    let config = site.write("coordinator.toml", &ours);
    for command in ["run", "check-config"] {
        let output = coordinator().args([command, "--config"]).arg(&config).output().unwrap();
        assert_eq!(output.status.code(), Some(78), "{}", said(&output));
        assert!(said(&output).contains("set broker.secret_file (openssl rand -hex 32)"), "{}", said(&output));
    }
    let secret = Command::new("openssl").args(["rand", "-hex", "32"]).output().unwrap();
    let secret = site.write("broker.secret", &said(&secret));
    let ours = with(&ours, "## secret_file = \"broker.secret\"", &format!("secret_file = {secret:?}"));
    let ours = with(&ours, "# address = \"\"", &format!("address = \"mqtt://127.0.0.1:{port}\""));
    site.coordinate(&ours);

    // Without its password, or with another's, a node is refused.
    let password = |name: &str| {
        let output = coordinator().args(["password", "--config"]).arg(&config).arg(name).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        output.stdout
    };
    let file = site.path("password");
    let with_password =
        with(&theirs, "# password_file = \"/etc/evenhand/password\"", &format!("password_file = {file:?}"));
    fs::write(&file, password("meter-2")).unwrap();
    for (name, text) in [("without", &theirs), ("wrong", &with_password)] {
        let impostor = site.write("impostor.toml", text);
        site.start(node(), name, &impostor);
        while !site.log(name).contains("the broker refuses the user name or password") {
            let ended = site.running.last_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none_or(|status| !status.success()), "{}", site.log(name));
            thread::sleep(Duration::from_millis(50));
        }
        let mut impostor = site.running.pop().unwrap();
        let _ended = impostor.kill().and_then(|()| impostor.wait());
    }
    assert_eq!(site.status().unwrap()["nodes"].as_array().unwrap().len(), 0);

    // With its password alone it reaches the broker, and is not admitted.
    fs::write(&file, password("meter-1")).unwrap();
    let uninvited = site.write("uninvited.toml", &with_password);
    site.start(node(), "uninvited", &uninvited);
    while !site.log("uninvited").contains("it was not invited; ask the operator for an invitation") {
        thread::sleep(Duration::from_millis(50));
    }
    let mut uninvited = site.running.pop().unwrap();
    let _ended = uninvited.kill().and_then(|()| uninvited.wait());
    assert_eq!(site.status().unwrap()["nodes"].as_array().unwrap().len(), 0);

    // An invitation holds both.
    let mut invite = coordinator();
    invite
        .args(["invite", "--config"])
        .arg(&config)
        .args(["--name", "meter-1"])
        .current_dir(site.folder.path());
    let invited = invite.output().unwrap();
    assert!(invited.status.success(), "{}", said(&invited));
    let config = site.path("node.toml");
    let joined = node()
        .args(["join", String::from_utf8(invited.stdout).unwrap().trim(), "--config"])
        .arg(&config)
        .arg("--state")
        .arg(site.path("node-state"))
        .output()
        .unwrap();
    assert!(joined.status.success(), "{}", said(&joined));
    site.start(node(), "meter-1", &config);
    site.takes_part("meter-1");
}
