//! Simulated fleets, experiments, calculators and reports of Evenhand.
//!
//! The binary `evenhand-fleet` is a thin shell over [`cli::Cli`].

pub mod bench;
pub mod calc;
pub mod cli;
pub mod demo;
mod error;
pub mod outcome;
pub mod progress;
pub mod report;
pub mod table;

pub use error::FleetError;
