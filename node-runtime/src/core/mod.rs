//! The node as a state machine: no sockets, no clock, no files, no threads.
//!
//! A driver feeds [`Input`]s and carries out [`Effect`]s: the MQTT shell does it with a real link and a blocking thread for
//! training, the simulated fleet in line and in virtual time. Both run this code.

mod effect;
mod entry;
mod forecasts;
mod graph;
mod input;
mod node;
mod optimiser;
mod saved;
mod work;

#[cfg(test)]
mod tests;

pub use effect::{Effect, Job, Prediction};
pub use entry::Entry;
pub use forecasts::{Forecast, Forecasts, Outcome};
pub use graph::Card;
pub use input::{GraphOutcome, Input, Trained};
pub use node::{Node, Settings};
pub use saved::Saved;
