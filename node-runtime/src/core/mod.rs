//! The node as a state machine: no sockets, no clock, no files, no threads.
//!
//! A driver passes [`NodeInput`]s to [`Node::step`] and carries out the [`NodeEffect`]s: the [shell](crate::shell) over MQTT with
//! blocking threads for training, [inline](crate::inline) on the caller's thread and in virtual time. Both run this code.

mod effect;
mod forecasts;
mod graph;
mod input;
mod journal_entry;
mod measure;
mod node;
mod optimiser;
mod orders;
mod personal;
mod predict;
mod release;
mod saved_node;

#[cfg(test)]
mod tests;

pub use effect::{NodeEffect, PersonalJob, Prediction, TrainingJob};
pub use forecasts::{Forecast, ForecastOutcome, Forecasts};
pub use graph::ModelInfo;
pub use input::{GraphOutcome, NodeInput, PredictedOutputs, Trained};
pub use journal_entry::JournalEntry;
pub use node::{Node, NodeSettings};
pub use orders::OrderLimits;
pub use saved_node::SavedNode;
