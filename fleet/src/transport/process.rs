//! A node as a process of its own.
//!
//! The process is this very program, under the name `evenhand-node` and with the command `node`, which does what
//! `evenhand-node run` does. So `cargo run` needs no second program, and the processes can never be of another version.
//! It ends when its standard input closes: also when whoever started it was killed.

use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use evenhand_models::LoadOptions;
use evenhand_node::config::Config;
use evenhand_node::library::Library;
use evenhand_node::shell::{self, Stop, Workshop};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time;

use crate::FleetError;

/// How long a process may take to end before it is killed.
const FAREWELL: Duration = Duration::from_secs(8);

/// Starts a node's process, looks after it, and ends it at `stop`; returns the time it spent in training.
pub(super) async fn run(config: Config, mut stop: Stop) -> Result<Duration, FleetError> {
    let id = config.node.id.clone();
    let failed =
        |cause: std::io::Error| FleetError::Process { node: id.to_string(), cause: cause.to_string() };
    let (mut child, _file) = start(&config).map_err(failed)?;
    // Waiting closes the child's standard input unless it is held here.
    let stdin = child.stdin.take();
    tokio::select! {
        ended = child.wait() => {
            let cause = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
            return Err(FleetError::Process { node: id.to_string(), cause });
        }
        _ = stop.wait_for(|stop| *stop) => {}
    }
    drop(stdin);
    let mut said = String::new();
    if let Some(stdout) = &mut child.stdout {
        let _late = time::timeout(FAREWELL, stdout.read_to_string(&mut said)).await;
    }
    // `kill_on_drop` sees to a process that does not listen.
    let _late = time::timeout(FAREWELL, child.wait()).await;
    Ok(Duration::from_secs_f64(said.trim().parse().unwrap_or(0.0)))
}

/// The process, and its configuration, which must live as long.
fn start(config: &Config) -> std::io::Result<(Child, tempfile::NamedTempFile)> {
    let text = toml::to_string(config).map_err(std::io::Error::other)?;
    let mut file = tempfile::Builder::new().prefix("evenhand-node-").suffix(".toml").tempfile()?;
    file.write_all(text.as_bytes())?;
    let child = Command::new(std::env::current_exe()?)
        .arg0("evenhand-node")
        .arg("node")
        .arg("--config")
        .arg(file.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Ctrl-C is for the fleet, which ends its nodes itself.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    Ok((child, file))
}

/// The configuration of one node
#[derive(Debug, clap::Args)]
pub struct NodeArgs {
    /// The configuration file
    #[arg(long)]
    config: PathBuf,
}

/// Is a node until standard input closes; prints the seconds it spent in training.
pub fn main(args: &NodeArgs) -> Result<(), FleetError> {
    let config = Config::load(&args.config)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(FleetError::Runtime)?;
    let workshop = Arc::new(Workshop::new(Arc::new(Library::new(None, LoadOptions::default())), 1));
    let training = Arc::clone(&workshop);
    let stop = watch::Sender::new(false);
    let stopped = stop.subscribe();
    std::thread::spawn(move || {
        let _closed = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        stop.send_replace(true);
    });
    runtime.block_on(shell::run(&config, workshop, stopped))?;
    writeln!(std::io::stdout(), "{}", training.training().as_secs_f64()).map_err(FleetError::Output)
}
