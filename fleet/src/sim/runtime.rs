//! Threads for links, timers and signals.

use tokio::runtime::{Builder, Runtime};

use super::SimulationError;

/// A runtime with a thread for every core.
pub fn runtime() -> Result<Runtime, SimulationError> {
    Builder::new_multi_thread().enable_all().build().map_err(SimulationError::Runtime)
}
