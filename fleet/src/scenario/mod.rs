//! Scenarios: corrupted streams of samples, and nodes that misbehave.
//!
//! A [`SampleStream`] is a pure function of the pool, the [`ScenarioConfig`] and its seed: every node, round and sample can
//! be asked for at any time, in any order, from any thread, beside the clean samples.

mod agent_corruption;
mod attack;
mod behaviour;
mod config;
mod corruption;
mod day_ahead;
mod error;
mod false_readings;
mod naive;
mod noise;
mod quality;
mod source;
mod spread;
mod stream;

#[cfg(test)]
mod tests;

pub use agent_corruption::AgentCorruption;
pub use attack::{Attack, Attacker};
pub use behaviour::{NodeBehaviour, SeededBehaviour};
pub use config::ScenarioConfig;
pub use corruption::Corruption;
pub use day_ahead::series_config;
pub use error::ScenarioError;
pub use false_readings::FalseReadings;
pub use naive::NaiveScores;
pub use source::NodeStream;
pub use spread::{QualitySpread, designated};
pub use stream::{CleanRound, HeldOut, SampleStream, TrainedRow};
