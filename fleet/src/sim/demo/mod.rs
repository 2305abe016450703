//! The demo: simulated households whose meters differ in quality.

mod config;
mod fleet;
mod plan;
mod run;

pub use config::{DemoConfig, Transport};
pub use plan::{DemoError, DemoPlan};
pub use run::{federation_id, run_fleet, simulate};
