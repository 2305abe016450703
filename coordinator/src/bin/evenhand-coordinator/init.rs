//! The command `init`: the configuration of a federation of real meters.

use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use evenhand_broker::random_text;
use evenhand_coordinator::config::CoordinatorConfig;
use evenhand_program::atomic::AtomicFile;
use evenhand_program::exit::Exit;
use evenhand_protocol::identity::FederationId;

use super::{CommandFailure, print};

/// The mean wait for the model under equal odds, in rounds: every third home is drawn.
const EQUAL_WAIT: u32 = 3;

/// The promise: nobody waits longer on average, in units of the wait under equal odds.
const PROMISE: u32 = 3;

/// Homes that may join later, for each one of the beginning; the promise holds with them too.
const GROWTH: u32 = 2;

/// The flags of `init`; what is missing is asked for on a terminal.
#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// The federation's name.
    #[arg(long)]
    name: Option<FederationId>,
    /// The number of homes.
    #[arg(long)]
    homes: Option<u32>,
    /// "embedded", or the URL of an MQTT broker: mqtts://HOST, with :PORT where it is another.
    #[arg(long)]
    broker: Option<String>,
    /// With the embedded broker: the address and port that nodes connect to.
    #[arg(long, default_value = "0.0.0.0:1883")]
    listen: std::net::SocketAddr,
    /// The broker's address as homes reach it, for invitations: mqtt://HOST or mqtts://HOST.
    #[arg(long)]
    address: Option<String>,
    /// Least minutes between rounds.
    #[arg(long, default_value_t = 15)]
    interval_minutes: u32,
    /// The file to write; secrets are written beside it.
    #[arg(long, short, default_value = "coordinator.toml")]
    output: PathBuf,
}

pub(super) fn init(arguments: InitArguments) -> Result<(), CommandFailure> {
    let InitArguments { name, homes, broker, listen, address, interval_minutes, output } = arguments;
    let usage = |sentence: String| CommandFailure::new(Exit::Usage, anyhow!(sentence));
    if output.exists() {
        let sentence =
            format!("{} is there already; name another file by --output, or remove it", output.display());
        return Err(usage(sentence));
    }
    let parsed = |text: &str| FederationId::new(text).map_err(|error| error.to_string());
    let name = given(name, "--name", "Name of the federation", "town", parsed)?;
    let counted = |text: &str| text.parse().map_err(|_| format!("{text:?} is no number"));
    let homes: u32 = given(homes, "--homes", "Number of homes", "20", counted)?;
    let broker = given(broker, "--broker", "Broker: embedded, or mqtts://HOST", "embedded", |text: &str| {
        Ok(text.to_owned())
    })?;
    if !(2..=5000).contains(&homes) {
        return Err(usage(format!("--homes {homes}: a federation has 2 to 5000 homes")));
    }
    if !(1..=1440).contains(&interval_minutes) {
        return Err(usage(format!("--interval-minutes {interval_minutes}: from 1 to 1440, a day")));
    }
    let folder = std::path::absolute(&output).map_err(|error| usage(format!("--output: {error}")))?;
    let folder = folder.parent().unwrap_or(Path::new("/")).to_path_buf();
    let plan = FederationPlan { name, homes, broker, listen, address, interval_minutes, folder };
    let text = plan.configuration();
    let wrong = |error| CommandFailure::new(Exit::Config, error);
    // Before anything is written: a broker's URL may be wrong.
    if plan.is_embedded() {
        write_secret(&plan.secret_file())?;
    }
    write_secret(&plan.token_file())?;
    CoordinatorConfig::parse(&text).and_then(|config| config.check()).map_err(wrong)?;
    AtomicFile::new(&output)
        .owner_only()
        .write(text.as_bytes())
        .map_err(|error| unwritable(&output, &error))?;
    print(plan.report(&output))
}

/// What the flag says, or the answer on the terminal; an empty line takes the proposal.
fn given<T>(
    flag: Option<T>,
    name: &str,
    question: &str,
    proposal: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<T, CommandFailure> {
    if let Some(value) = flag {
        return Ok(value);
    }
    let usage = |sentence: String| CommandFailure::new(Exit::Usage, anyhow!(sentence));
    if !io::stdin().is_terminal() {
        return Err(usage(format!("{name} is missing; without a terminal nothing is asked")));
    }
    loop {
        print(format_args!("{question} [{proposal}]: "))?;
        let mut line = String::new();
        let read =
            io::stdin().lock().read_line(&mut line).map_err(|error| usage(format!("{name}: {error}")))?;
        if read == 0 {
            return Err(usage(format!("{name} is missing")));
        }
        match parse(if line.trim().is_empty() { proposal } else { line.trim() }) {
            Ok(value) => return Ok(value),
            Err(sentence) => drop(writeln!(io::stderr(), "{sentence}")),
        }
    }
}

/// What the configuration is made of.
struct FederationPlan {
    name: FederationId,
    homes: u32,
    broker: String,
    listen: std::net::SocketAddr,
    address: Option<String>,
    interval_minutes: u32,
    /// Of the configuration.
    folder: PathBuf,
}

impl FederationPlan {
    fn is_embedded(&self) -> bool {
        self.broker == "embedded"
    }

    fn secret_file(&self) -> PathBuf {
        self.folder.join("broker.secret")
    }

    fn token_file(&self) -> PathBuf {
        self.folder.join("operator.token")
    }

    /// Homes drawn a round.
    fn k(&self) -> u32 {
        self.homes.div_ceil(EQUAL_WAIT)
    }

    /// It need not wait for the last home, but for as many as are drawn.
    fn nodes_min(&self) -> u32 {
        (self.homes / 2).max(self.k()).max(2)
    }

    fn worst_wait(&self) -> u32 {
        EQUAL_WAIT * PROMISE
    }

    fn configuration(&self) -> String {
        let Self { name, homes, interval_minutes, listen, .. } = self;
        let (k, nodes_min, worst_wait) = (self.k(), self.nodes_min(), self.worst_wait());
        let (nodes_max, interval_ms) = (GROWTH * homes, interval_minutes * 60_000);
        let (token, secret) = (self.token_file(), self.secret_file());
        let broker = match self.is_embedded() {
            true => format!(
                "url = \"embedded\"\n\
                 ## Nodes on other machines connect here, by the passwords in their invitations.\n\
                 listen = \"{listen}\"\n\
                 secret_file = {secret:?}\n\
                 ## With a certificate nobody on the way reads passwords; nodes then write mqtts:// (see docs/brokers.md).\n\
                 # listen_certificate_file = \"broker.pem\"\n\
                 # listen_key_file = \"broker.key\"\n"
            ),
            false => format!(
                "url = {:?}\n\
                 ## What the broker asks of the coordinator.\n\
                 # password_file = \"broker.password\"\n\
                 # ca_file = \"ca.pem\"\n\
                 # certificate_file = \"evenhand-coordinator.pem\"\n\
                 # key_file = \"evenhand-coordinator.key\"\n",
                self.broker
            ),
        };
        let joining = match &self.address {
            Some(address) => format!("address = {address:?}\n"),
            None => "# address = \"mqtt://HOST\"\n".to_owned(),
        };
        format!(
            "## A federation of {homes} homes, by evenhand-coordinator init. Every other key has its default:\n\
             ## evenhand-coordinator print-config\n\n\
             [federation]\n\
             name = \"{name}\"\n\
             ## It begins when so many homes are online; the others join later.\n\
             nodes_min = {nodes_min}\n\
             nodes_max = {nodes_max}\n\
             ## No more than a round every {interval_minutes} minutes. Nodes answer once they have a day of new readings.\n\
             round_interval_ms = {interval_ms}\n\
             ## Small devices on slow lines have a minute.\n\
             round_deadline_ms = 60000\n\n\
             [continuous]\n\
             ## The promise: no home waits longer than {worst_wait} rounds on average for the latest model.\n\
             worst_wait = {worst_wait}\n\n\
             [exploiting]\n\
             ## Homes that receive the latest model in a round.\n\
             k = {k}\n\n\
             [broker]\n{broker}\n\
             [joining]\n\
             ## The broker's address as homes reach it, for invitations.\n\
             {joining}\n\
             [dashboard]\n\
             token_file = {token:?}\n"
        )
    }

    fn report(&self, output: &Path) -> String {
        let mut text = format!(
            "{}: federation {} of {} homes, {} of them drawn in a round\n\
             the promise: no home waits longer than {} rounds on average for the latest model; nodes that send a day of readings \
             at a time, as by default, have a round a day\n\
             {}: the operator's token for the dashboard\n",
            output.display(),
            self.name,
            self.homes,
            self.k(),
            self.worst_wait(),
            self.token_file().display(),
        );
        if self.is_embedded() {
            text += &format!("{}: the secret of the nodes' passwords\n", self.secret_file().display());
        }
        text + &format!("next: evenhand-coordinator run --config {}\n", output.display())
    }
}

/// 32 random bytes in hex, for their owner alone; a secret that is there stays.
fn write_secret(path: &Path) -> Result<(), CommandFailure> {
    if fs::exists(path).unwrap_or(false) {
        return Ok(());
    }
    let text = random_text(32);
    AtomicFile::new(path)
        .owner_only()
        .write(format!("{text}\n").as_bytes())
        .map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> CommandFailure {
    CommandFailure::new(Exit::Software, anyhow!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_number_of_homes_has_a_configuration_that_holds() {
        for homes in (2..60).chain([100, 333, 1000, 5000]) {
            let folder = tempfile::tempdir().unwrap();
            let plan = FederationPlan {
                name: FederationId::new("town").unwrap(),
                homes,
                broker: "embedded".into(),
                listen: "0.0.0.0:1883".parse().unwrap(),
                address: Some("mqtt://server.example".into()),
                interval_minutes: 15,
                folder: folder.path().to_path_buf(),
            };
            write_secret(&plan.secret_file()).unwrap();
            write_secret(&plan.token_file()).unwrap();
            let config = CoordinatorConfig::parse(&plan.configuration()).unwrap();
            config.check().unwrap_or_else(|error| panic!("{homes} homes: {error}"));
            assert!(config.federation.nodes_min <= homes);
            let concerns = config.concerns().join("\n");
            assert!(!concerns.contains("chmod") && !concerns.contains("guessed"), "{concerns}");
            let rules = config.rules().unwrap();
            assert_eq!(rules.continuous.worst_wait(homes as usize, rules.exploiting.k), 9.0);
        }
    }
}
