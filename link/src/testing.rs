//! A mosquitto for tests, and keys that follow from names.

use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use evenhand_protocol::identity::{Digest, FederationId, NodeId};
use evenhand_seal::{CoordinatorSeal, Entropy, KeyPair, NodeIdentity, NodeSeal, OpenDoor};
use tempfile::TempDir;

use crate::{Broker, CoordinatorSealing, NodeSealing, Sealing};

/// A mosquitto on a free loopback port, with its files in a folder of its own; killed when dropped.
///
/// Failures panic with the remedy: a test without its broker must fail.
#[derive(Debug)]
pub struct Mosquitto {
    folder: TempDir,
    port: u16,
    encrypted: bool,
    process: Option<Child>,
}

impl Mosquitto {
    /// Starts one that accepts every client and stores nothing on disk.
    pub fn start() -> Self {
        Self::start_with("allow_anonymous true\n", false)
    }

    /// Starts one that stores sessions and messages over an orderly restart.
    pub fn start_persistent() -> Self {
        Self::start_with("allow_anonymous true\npersistence true\n", false)
    }

    /// Starts one with these lines in its configuration; `FOLDER` in them stands for its own folder.
    pub fn start_with(configuration: &str, encrypted: bool) -> Self {
        let folder = TempDir::new().expect("a temporary folder can be made");
        Self::start_in(folder, configuration, encrypted)
    }

    /// Starts one in a folder that was prepared for it, with certificates for example.
    pub fn start_in(folder: TempDir, configuration: &str, encrypted: bool) -> Self {
        Self::start_as(folder, encrypted, |listener, own| format!("{listener}{own}{configuration}"))
    }

    /// As [`Mosquitto::start_in`], with the lines in a file of their own that is included, as Debian's configuration
    /// includes those in `conf.d`; sessions are stored.
    pub fn start_included(folder: TempDir, configuration: &str, encrypted: bool) -> Self {
        let path = folder.path().to_owned();
        std::fs::create_dir(path.join("conf.d")).expect("the folder is writable");
        Self::start_as(folder, encrypted, |listener, own| {
            let text = in_folder(&format!("{listener}{configuration}"), &path);
            std::fs::write(path.join("conf.d/included.conf"), text).expect("the folder is writable");
            format!("{own}persistence true\ninclude_dir FOLDER/conf.d\n")
        })
    }

    /// Starts one with the configuration that `configuration` makes of its listener and its own settings.
    fn start_as(folder: TempDir, encrypted: bool, configuration: impl Fn(&str, &str) -> String) -> Self {
        let mut broker = Self { folder, port: 0, encrypted, process: None };
        // Another program may take the port before mosquitto binds it: try another one then.
        while broker.process.is_none() {
            broker.port = free_port();
            let listener = format!("listener {} 127.0.0.1\n", broker.port);
            let text = configuration(&listener, "user root\npersistence_location FOLDER/\n");
            std::fs::write(broker.configuration(), in_folder(&text, broker.folder.path()))
                .expect("the folder is writable");
            broker.try_start();
        }
        broker
    }

    /// Its address.
    pub fn broker(&self) -> Broker {
        Broker::parse(&self.url()).expect("a well-formed address")
    }

    /// Its address as a URL.
    pub fn url(&self) -> String {
        format!("{}://127.0.0.1:{}", if self.encrypted { "mqtts" } else { "mqtt" }, self.port)
    }

    /// The folder of its files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Kills it, as a crash would.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("our own child can be killed");
            process.wait().expect("our own child can be waited for");
        }
    }

    /// Suspends the process, as on a hanging machine: connections stay, answers do not come.
    pub fn suspend(&self) {
        self.signal("-STOP");
    }

    /// Resumes a suspended process.
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    /// Stops it in order, so that a persistent one saves its state.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let status =
                Command::new("kill").arg(process.id().to_string()).status().expect("kill can be run");
            assert!(status.success(), "our own child can be signalled");
            process.wait().expect("our own child can be waited for");
        }
    }

    /// Starts it again on the same port, after [`Mosquitto::kill`] or [`Mosquitto::stop`].
    pub fn restart(&mut self) {
        self.try_start();
        assert!(self.process.is_some(), "mosquitto does not start again on port {}", self.port);
    }

    fn signal(&self, signal: &str) {
        let process = self.process.as_ref().expect("mosquitto runs");
        let status = Command::new("kill").arg(signal).arg(process.id().to_string()).status();
        assert!(status.expect("kill can be run").success(), "our own child can be signalled");
    }

    fn configuration(&self) -> PathBuf {
        self.folder.path().join("mosquitto.conf")
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("mosquitto.log")
    }

    /// Starts the process; `process` stays empty if the port is taken.
    fn try_start(&mut self) {
        let log = std::fs::File::create(self.log()).expect("the folder is writable");
        // Debian puts mosquitto where a user's PATH may not look.
        let program = ["/usr/sbin/mosquitto", "/usr/local/sbin/mosquitto", "/opt/homebrew/sbin/mosquitto"]
            .into_iter()
            .find(|path| Path::new(path).exists())
            .unwrap_or("mosquitto");
        let mut process = Command::new(program)
            .arg("-c")
            .arg(self.configuration())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("mosquitto can be run; install it (Debian: apt-get install mosquitto)");
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.port);
        while TcpStream::connect(address).is_err() {
            if process.try_wait().expect("our own child can be polled").is_some() {
                let log = std::fs::read_to_string(self.log()).unwrap_or_default();
                assert!(log.contains("Address already in use"), "mosquitto does not start: {log}");
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        self.process = Some(process);
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        self.kill();
    }
}

fn in_folder(configuration: &str, folder: &Path) -> String {
    configuration.replace("FOLDER", &folder.display().to_string())
}

/// A loopback port that is free at the moment.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free loopback port");
    listener.local_addr().expect("a bound listener has an address").port()
}

fn keys_of(name: &str) -> KeyPair {
    KeyPair::generate(&mut Entropy::from_seed(Digest::of(name.as_bytes()).0))
}

fn fresh_entropy() -> Entropy {
    let nanos =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.as_nanos());
    Entropy::from_seed(Digest::of(&nanos.to_le_bytes()).0)
}

/// The sealing of a node whose key follows from its name, and which trusts the first coordinator it sees.
pub fn node_sealing(federation: &FederationId, node: &NodeId, session: u64) -> Arc<dyn Sealing> {
    let identity =
        NodeIdentity::new(federation.clone(), node.clone(), keys_of(&format!("{federation}/{node}")));
    Arc::new(NodeSealing::new(NodeSeal::new(identity, session, fresh_entropy())))
}

/// The sealing of a coordinator whose key follows from the federation's name, and which admits everybody.
pub fn coordinator_sealing(federation: &FederationId) -> Arc<dyn Sealing> {
    let seal = CoordinatorSeal::new(federation.clone(), keys_of(federation.as_str()), fresh_entropy());
    Arc::new(CoordinatorSealing::new(seal.repeating_manifest(), OpenDoor))
}
