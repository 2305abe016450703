//! A node over MQTT: the core with a link, a source and a state folder.

mod answer_watch;
mod disk;
mod error;
mod forecast_status;
mod history_file;
mod http_server;
mod identity;
pub(crate) mod identity_files;
mod log_dedup;
mod outbound_queue;
mod owner;
mod page;
mod reading_watch;
mod runner;
mod side_sources;
mod source_driver;
mod state_store;
mod status;
mod status_sinks;
mod training_pool;

use std::sync::Arc;

use evenhand_program::notify::ServiceNotifier;
use tokio::sync::watch;

pub use error::NodeError;
pub use forecast_status::{CollectingStatus, ForecastStatus, SkillStatus};
pub use status::{CertificateStatus, SourceStatus, StatusSnapshot};
pub use training_pool::TrainingPool;

pub(crate) use self::reading_watch::ReadingWatch;
use self::runner::Runner;
use crate::config::NodeConfig;

/// Stop signal: a node shuts down when it becomes true, or when its sender is dropped.
pub type Stop = watch::Receiver<bool>;

/// Runs one node until `stop`, and returns its last status; reconnects to a broker that is unavailable.
///
/// Many nodes can run on one runtime: they share models and training threads through the training `pool`.
pub async fn run(
    config: &NodeConfig,
    pool: Arc<TrainingPool>,
    stop: Stop,
) -> Result<StatusSnapshot, NodeError> {
    Runner::run(config, pool, stop, ServiceNotifier::default()).await
}

/// As [`run`], for the one node of a process that systemd may have started.
pub async fn run_as_service(
    config: &NodeConfig,
    pool: Arc<TrainingPool>,
    stop: Stop,
) -> Result<StatusSnapshot, NodeError> {
    Runner::run(config, pool, stop, ServiceNotifier::from_environment()).await
}
