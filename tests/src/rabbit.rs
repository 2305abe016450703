//! A RabbitMQ cluster of three on loopback, with exactly the files that are shipped in `deploy/rabbitmq`.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use evenhand_link::testing::free_port;
use tempfile::TempDir;

const PROGRAMS: &str = "/usr/lib/rabbitmq/bin";
/// How often the cluster is started before its failure is no accident.
const ATTEMPTS: usize = 3;

/// Three members, each with its own name, ports and folder; killed when dropped.
#[derive(Debug)]
pub struct Rabbits {
    folder: TempDir,
    /// What tells Erlang's nodes of each other, and would otherwise be left behind.
    registrar: Child,
    registrar_port: u16,
    members: Vec<ClusterMember>,
}

#[derive(Debug)]
struct ClusterMember {
    mqtt_port: u16,
    process: Child,
}

impl Rabbits {
    /// Starts three members and waits until all of them are there.
    ///
    /// Another program may take a port between our looking and a member's binding: others are looked for then.
    pub fn start() -> Self {
        for _ in 1..ATTEMPTS {
            match Self::try_start() {
                Ok(cluster) => return cluster,
                Err(log) => eprintln!("RabbitMQ does not start; trying again. {log}"),
            }
        }
        Self::try_start().unwrap_or_else(|log| panic!("RabbitMQ does not start: {log}"))
    }

    fn try_start() -> Result<Self, String> {
        let folder = TempDir::new().unwrap();
        let cookie = folder.path().join(".erlang.cookie");
        fs::write(&cookie, "evenhand").unwrap();
        fs::set_permissions(&cookie, std::os::unix::fs::PermissionsExt::from_mode(0o400)).unwrap();
        let registrar_port = free_port();
        let registrar = Command::new("epmd")
            .args(["-address", "127.0.0.1", "-port", &registrar_port.to_string()])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("epmd can be run; install RabbitMQ (Debian: apt-get install rabbitmq-server)");
        let mut cluster = Self { folder, registrar, registrar_port, members: Vec::new() };
        while !listens(registrar_port) {
            if cluster.registrar.try_wait().unwrap().is_some() {
                return Err("epmd ended".into());
            }
            thread::sleep(Duration::from_millis(10));
        }
        cluster.members = (1..=3).map(|number| cluster.start_member(number)).collect();
        for index in 0..3 {
            while !listens(cluster.members[index].mqtt_port) {
                cluster.all_live()?;
                thread::sleep(Duration::from_millis(50));
            }
        }
        // A member that answers may still be joining: sessions need all three to choose their majority from.
        for number in 1..=3 {
            if let Err(said) = cluster.control(number, &["await_online_nodes", "3"], "") {
                cluster.all_live()?;
                return Err(said);
            }
        }
        Ok(cluster)
    }

    /// What a member that ended had to say.
    fn all_live(&mut self) -> Result<(), String> {
        for (index, member) in self.members.iter_mut().enumerate() {
            if member.process.try_wait().unwrap().is_some() {
                let log = self.folder.path().join(format!("{}/out", index + 1));
                return Err(fs::read_to_string(log).unwrap());
            }
        }
        Ok(())
    }

    /// The addresses of all members, as one broker.
    pub fn url(&self) -> String {
        let addresses: Vec<String> =
            self.members.iter().map(|m| format!("127.0.0.1:{}", m.mqtt_port)).collect();
        format!("mqtt://{}", addresses.join(","))
    }

    /// Lets somebody in, by the shipped script.
    pub fn admit(&self, role: &[&str], password: &str) {
        let control = format!("{PROGRAMS}/rabbitmqctl -n {}", name(1));
        let mut command = self.environment(shipped("user"), 1);
        run(command.args(role).env("RABBITMQCTL", control), password).unwrap();
    }

    /// Ends a member as a power cut would.
    pub fn kill(&mut self, number: usize) {
        // Until it knows its own process, a member is nothing but the script that starts it.
        if let Ok(pid) = fs::read_to_string(self.folder.path().join(format!("{number}/pid"))) {
            run(Command::new("kill").args(["-9", pid.trim()]), "").unwrap();
        } else {
            self.members[number - 1].process.kill().unwrap();
        }
        self.members[number - 1].process.wait().unwrap();
    }

    /// How many clients a member has, as the kernel counts established connections.
    pub fn clients(&self, number: usize) -> usize {
        let port = format!(":{:04X}", self.members[number - 1].mqtt_port);
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        let established = |line: &&str| {
            let mut fields = line.split_whitespace();
            let local = fields.nth(1).unwrap_or_default();
            local.ends_with(&port) && fields.nth(1) == Some("01")
        };
        table.lines().filter(established).count()
    }

    fn start_member(&self, number: usize) -> ClusterMember {
        let own = self.folder.path().join(number.to_string());
        fs::create_dir(&own).unwrap();
        fs::copy(shipped("enabled_plugins"), own.join("enabled_plugins")).unwrap();
        let (amqp_port, mqtt_port) = (free_port(), free_port());
        let mut configuration = fs::read_to_string(shipped("rabbitmq.conf")).unwrap();
        for (shipped, own) in [
            ("rabbit@one\n", format!("{}\n", name(1))),
            ("rabbit@two\n", format!("{}\n", name(2))),
            ("rabbit@three\n", format!("{}\n", name(3))),
            ("listeners.tcp.default = 5672\n", format!("listeners.tcp.default = 127.0.0.1:{amqp_port}\n")),
            ("listeners.tcp.default = 1883\n", format!("listeners.tcp.default = 127.0.0.1:{mqtt_port}\n")),
        ] {
            assert!(configuration.contains(shipped), "{shipped}");
            configuration = configuration.replace(shipped, &own);
        }
        fs::write(own.join("rabbitmq.conf"), configuration).unwrap();
        let out = fs::File::create(own.join("out")).unwrap();
        let process = self
            .environment(Path::new(PROGRAMS).join("rabbitmq-server"), number)
            .stdin(Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(out)
            .spawn()
            .unwrap();
        ClusterMember { mqtt_port, process }
    }

    fn control(&self, number: usize, arguments: &[&str], input: &str) -> Result<String, String> {
        let mut command = self.environment(Path::new(PROGRAMS).join("rabbitmqctl"), number);
        run(command.args(["-q", "-n", &name(number)]).args(arguments), input)
    }

    fn environment(&self, program: PathBuf, number: usize) -> Command {
        let own = self.folder.path().join(number.to_string());
        let mut command = Command::new(program);
        command
            .env("HOME", self.folder.path())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .env("ERL_EPMD_PORT", self.registrar_port.to_string())
            .env("RABBITMQ_NODENAME", name(number))
            .env("RABBITMQ_DIST_PORT", free_port().to_string())
            .env("RABBITMQ_CONFIG_FILE", own.join("rabbitmq"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", own.join("enabled_plugins"))
            .env("RABBITMQ_MNESIA_BASE", own.join("mnesia"))
            .env("RABBITMQ_LOG_BASE", own.join("log"))
            .env("RABBITMQ_LOGS", "-")
            .env("RABBITMQ_PID_FILE", own.join("pid"))
            .env("RABBITMQ_CONF_ENV_FILE", "/dev/null");
        command
    }
}

impl Drop for Rabbits {
    fn drop(&mut self) {
        for number in 1..=self.members.len() {
            if matches!(self.members[number - 1].process.try_wait(), Ok(None)) {
                self.kill(number);
            }
        }
        self.registrar.kill().unwrap();
        self.registrar.wait().unwrap();
    }
}

fn name(number: usize) -> String {
    format!("evenhand{number}@localhost")
}

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/rabbitmq").join(name)
}

/// True if somebody listens on a port of this machine, other than our own looking: a connection from a port to itself
/// succeeds as well.
fn listens(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port))
        .is_ok_and(|link| link.local_addr().is_ok_and(|own| own.port() != port))
}

/// What a program printed, or how it failed.
fn run(command: &mut Command, input: &str) -> Result<String, String> {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(text),
        false => Err(format!("{command:?}: {text}{}", String::from_utf8_lossy(&output.stderr))),
    }
}
