//! `evenhand-fleet demo`.

mod args;
mod plan;
mod run;
mod setup;

pub use args::{DemoArgs, Transport};
pub use plan::{Plan, PlanError};
pub(crate) use run::{carry, federation_id, runtime};
pub use run::{run, simulate};
