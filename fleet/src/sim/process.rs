//! A node as a process of its own.
//!
//! The process is this very program, under the name `evenhand-node` and with the command `node`, which does what
//! `evenhand-node run` does. So `cargo run` needs no second program, and the processes can never be of another version.
//! It ends when its standard input closes: also when its parent was killed.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use evenhand_models::LoadOptions;
use evenhand_node::config::NodeConfig;
use evenhand_node::model_cache::ModelCache;
use evenhand_node::shell::{self, StatusSnapshot, Stop, TrainingPool};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time;

use super::SimulationError;

/// Limit on the time in which a process ends before it is killed.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(8);

/// Figures of a node that has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct NodeEnd {
    /// Time it spent in training outside a shared pool.
    pub(super) seconds_training: f64,
    /// The skill of its forecasts.
    pub(super) skill: Option<f64>,
}

impl NodeEnd {
    pub(super) fn new(training: Duration, status: &StatusSnapshot) -> Self {
        let overall = status.day_ahead.as_ref().and_then(|day_ahead| day_ahead.overall.as_ref());
        Self { seconds_training: training.as_secs_f64(), skill: overall.and_then(|skill| skill.skill_all) }
    }
}

/// Starts a node's process, supervises it, and ends it at `stop`.
pub(super) async fn run(config: NodeConfig, mut stop: Stop) -> Result<NodeEnd, SimulationError> {
    let id = config.node.id.clone();
    let failed =
        |cause: std::io::Error| SimulationError::Process { node: id.to_string(), cause: cause.to_string() };
    let (mut child, _file) = start(&config).map_err(failed)?;
    // Waiting closes the child's standard input unless it is held here.
    let stdin = child.stdin.take();
    tokio::select! {
        ended = child.wait() => {
            let cause = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
            return Err(SimulationError::Process { node: id.to_string(), cause });
        }
        _ = stop.wait_for(|stop| *stop) => {}
    }
    drop(stdin);
    let mut output = String::new();
    if let Some(stdout) = &mut child.stdout {
        let _late = time::timeout(SHUTDOWN_TIMEOUT, stdout.read_to_string(&mut output)).await;
    }
    // `kill_on_drop` ends a process that does not.
    let _late = time::timeout(SHUTDOWN_TIMEOUT, child.wait()).await;
    Ok(serde_json::from_str(&output).unwrap_or_default())
}

/// The process, and its configuration, which must live as long.
fn start(config: &NodeConfig) -> std::io::Result<(Child, tempfile::NamedTempFile)> {
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

/// Runs the node of a configuration file until standard input closes; prints its figures.
pub fn main(config: &Path) -> Result<(), SimulationError> {
    let config = NodeConfig::load(config)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(SimulationError::Runtime)?;
    let pool = Arc::new(TrainingPool::new(Arc::new(ModelCache::new(None, LoadOptions::default())), 1));
    let training = Arc::clone(&pool);
    let stop = watch::Sender::new(false);
    let stopped = stop.subscribe();
    std::thread::spawn(move || {
        let _closed = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        stop.send_replace(true);
    });
    let status = runtime.block_on(shell::run(&config, pool, stopped))?;
    let end = serde_json::to_string(&NodeEnd::new(training.training(), &status));
    let end = end.map_err(|error| SimulationError::Output(error.into()))?;
    writeln!(std::io::stdout(), "{end}").map_err(SimulationError::Output)
}
