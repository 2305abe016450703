//! A node over MQTT: the core, a link, a source and a place to keep things.

mod complaints;
mod disk;
mod error;
mod feed;
mod forecaster;
mod letters;
mod metrics;
mod owner;
mod report;
mod runner;
mod state;
mod workshop;

use std::sync::Arc;

use evenhand_program::notify::ServiceNotifier;
use tokio::sync::watch;

pub use error::NodeError;
pub use report::{Report, SourceHealth};
pub use workshop::Workshop;

use self::runner::Runner;
use crate::config::Config;

/// Tells nodes to end: they do when it becomes true, or when its sender is gone.
pub type Stop = watch::Receiver<bool>;

/// Runs one node until `stop`; a broker that is away is waited for.
///
/// Many nodes can run on one runtime: they share models and training threads through the `workshop`.
pub async fn run(config: &Config, workshop: Arc<Workshop>, stop: Stop) -> Result<(), NodeError> {
    Runner::run(config, workshop, stop, ServiceNotifier::default()).await
}

/// As [`run`], for the one node of a process that systemd may have started.
pub async fn run_as_service(config: &Config, workshop: Arc<Workshop>, stop: Stop) -> Result<(), NodeError> {
    Runner::run(config, workshop, stop, ServiceNotifier::from_environment()).await
}
