//! `evenhand-fleet demo`.

mod args;
mod plan;

pub use args::{DemoArgs, Sampler, Strategy, Transport};
pub use plan::{Plan, PlanError};
