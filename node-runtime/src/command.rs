//! The command line of `evenhand-node`.

mod join;
mod probe;

use std::fmt::Display;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use evenhand_models::{DefaultInference, InferenceEngine};
use evenhand_program::exit::Exit;
use evenhand_program::{log, stdout};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use self::join::JoinPlaces;
use crate::config::{NodeConfig, SourceConfig};
use crate::model_cache::ModelCache;
use crate::shell::{self, StatusSnapshot, TrainingPool};
use crate::source::now_ms;

/// What `evenhand-node help` prints; manual pages and completions are made of it.
pub const HELP: &str = "\
The node of an Evenhand federation: reads a meter, trains, forecasts.

Usage: evenhand-node COMMAND [--config FILE]

Commands:
  join INVITATION
                Write the configuration and the secrets of an invitation, given as a line or a file
  run           Run the node until SIGTERM or Ctrl-C
  check-config  Check the configuration
  probe         Show three readings of the source, what they become, and stop
  status        Print the node's status; with --json for programs
  print-config  Print the default configuration with an explanation of every key
  version       Print the version
  help          Print this

Options:
  -c, --config FILE  The configuration [default: /etc/evenhand/node.toml]
  --state FOLDER     The state folder that join writes to [default: that of the configuration, or /var/lib/evenhand]
  --serial NUMBER    The serial number of the meter, for join
  --force            Let join change a configuration that is there
  --json             Print the status as one JSON object
  --wait SECONDS     How long probe waits for readings [default: 30]

Exit codes: 0 ok, 64 wrong command line, 65 no or wrong data, 69 no broker, 70 defect or output that cannot be written, 78 wrong configuration
";

const CONFIG_PATH: &str = "/etc/evenhand/node.toml";

/// Time that a probe waits for readings, in seconds.
const PROBE_WAIT_S: u64 = 30;

/// A running node writes its status several times a minute.
const STALE_S: i64 = 120;

/// An error message and the exit code.
struct NodeCommandFailure(String, Exit);

/// Runs the command in the arguments of the process.
pub fn main() -> ExitCode {
    let exit = match command(std::env::args().skip(1)) {
        Ok(()) => Exit::Ok,
        Err(NodeCommandFailure(sentence, exit)) => {
            print_error(&sentence);
            exit
        }
    };
    exit.into()
}

fn command(mut arguments: impl Iterator<Item = String>) -> Result<(), NodeCommandFailure> {
    let usage =
        |sentence: String| NodeCommandFailure(format!("{sentence}; see evenhand-node help"), Exit::Usage);
    let mut command = None;
    let mut path = PathBuf::from(CONFIG_PATH);
    let mut json = false;
    let (mut state, mut serial, mut force, mut invitation) = (None, None, false, None);
    let mut wait_s = PROBE_WAIT_S;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-c" | "--config" => {
                path = arguments.next().ok_or_else(|| usage(format!("{argument} wants a file")))?.into();
            }
            "--json" => json = true,
            "--force" => force = true,
            "--state" => {
                state = Some(PathBuf::from(
                    arguments.next().ok_or_else(|| usage(format!("{argument} wants a folder")))?,
                ));
            }
            "--serial" => {
                serial = Some(arguments.next().ok_or_else(|| usage(format!("{argument} wants a number")))?);
            }
            "--wait" => {
                let seconds =
                    arguments.next().and_then(|text| text.parse().ok()).filter(|seconds| *seconds > 0);
                wait_s = seconds.ok_or_else(|| usage("--wait wants a number of seconds".into()))?;
            }
            "-h" | "--help" => command = Some("help".to_owned()),
            "-V" | "--version" => command = Some("version".to_owned()),
            other => match other.strip_prefix("--config=") {
                Some(file) => path = file.into(),
                None if other.starts_with('-') => return Err(usage(format!("unknown option {other}"))),
                None if command.as_deref() == Some("join") && invitation.is_none() => {
                    invitation = Some(other.to_owned());
                }
                None if command.is_some() => {
                    return Err(usage(format!("one command at a time, not also {other}")));
                }
                None => command = Some(other.to_owned()),
            },
        }
    }
    match command.as_deref() {
        Some("join") => {
            let invitation =
                invitation.ok_or_else(|| usage("join wants an invitation: its line, or its file".into()))?;
            let places = JoinPlaces { config: &path, state, serial, force };
            match join::join(&invitation, places) {
                Ok(text) => print(text),
                Err(sentence) => Err(NodeCommandFailure(sentence, Exit::Usage)),
            }
        }
        Some("run") => run(&load(&path)?.with_derived_seed()),
        Some("probe") => match probe::probe(&load(&path)?, Duration::from_secs(wait_s.min(86_400))) {
            Ok(text) => print(text),
            Err(sentence) => Err(NodeCommandFailure(sentence, Exit::Data)),
        },
        Some("status") => status(&load(&path)?, json),
        Some("check-config") => check(&load(&path)?),
        Some("print-config") => print(NodeConfig::default_text()),
        Some("version") => {
            let sources = SourceConfig::kinds().collect::<Vec<_>>().join(", ");
            print(format_args!(
                "evenhand-node {} with the sources {sources}; forecasts by {}\n",
                env!("CARGO_PKG_VERSION"),
                DefaultInference::NAME
            ))
        }
        Some("help") => print(HELP),
        Some(other) => Err(usage(format!("unknown command {other}"))),
        None => Err(usage("no command".into())),
    }
}

fn load(path: &std::path::Path) -> Result<NodeConfig, NodeCommandFailure> {
    NodeConfig::load(path).map_err(|error| NodeCommandFailure(error.to_string(), Exit::Config))
}

fn check(config: &NodeConfig) -> Result<(), NodeCommandFailure> {
    config.resolve().map_err(|error| NodeCommandFailure(error.to_string(), Exit::Config))?;
    config.concerns().iter().for_each(|concern| print_error(&format!("warning: {concern}")));
    print(format_args!(
        "configuration OK: node {} of federation {}\n",
        config.node.id, config.node.federation
    ))
}

fn print(text: impl Display) -> Result<(), NodeCommandFailure> {
    stdout::print(text)
        .map_err(|error| NodeCommandFailure(format!("cannot write to stdout: {error}"), Exit::Software))
}

fn print_error(sentence: &str) {
    // If stderr is closed, the exit code remains.
    let _closed = writeln!(io::stderr(), "evenhand-node: {sentence}");
}

fn status(config: &NodeConfig, json: bool) -> Result<(), NodeCommandFailure> {
    let Some(folder) = &config.node.state_folder else {
        let sentence = "the node saves no state; set node.state_folder to see its status";
        return Err(NodeCommandFailure(sentence.into(), Exit::Config));
    };
    let snapshot = StatusSnapshot::read(folder).map_err(|error| {
        let sentence = format!("no status in {}: {error}; is the node running?", folder.display());
        NodeCommandFailure(sentence, Exit::Data)
    })?;
    if json {
        let text = serde_json::to_string(&snapshot)
            .map_err(|error| NodeCommandFailure(error.to_string(), Exit::Software))?;
        print(format_args!("{text}\n"))?;
    } else {
        print(&snapshot)?;
    }
    let age_s = now_ms().saturating_sub(snapshot.written_ms) / 1000;
    if age_s > STALE_S {
        let minutes = age_s / 60;
        print_error(&format!(
            "the status is {minutes} minutes old; the node is not running, or its disk is full"
        ));
    }
    Ok(())
}

fn run(config: &NodeConfig) -> Result<(), NodeCommandFailure> {
    log::init(&config.log);
    config.concerns().iter().for_each(|concern| tracing::warn!("{concern}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| NodeCommandFailure(format!("cannot start: {error}"), Exit::Software))?;
    let models = config.node.state_folder.as_ref().map(|folder| folder.join("models"));
    let models = Arc::new(ModelCache::new(models, config.load_options()));
    let pool = Arc::new(TrainingPool::new(models, 1));
    let result = runtime.block_on(async {
        let (sender, stop) = watch::channel(false);
        let mut terminate = signal(SignalKind::terminate()).map_err(|error| {
            NodeCommandFailure(format!("cannot listen to signals: {error}"), Exit::Software)
        })?;
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            let _ = sender.send(true);
        });
        let ended = shell::run_as_service(config, pool, stop).await;
        ended.map(drop).map_err(|error| NodeCommandFailure(error.to_string(), error.exit()))
    });
    // A source's thread may be waiting for its device; no data are lost by not waiting for it.
    runtime.shutdown_background();
    result
}
