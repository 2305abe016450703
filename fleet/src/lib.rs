//! Simulated fleets, experiments, calculators and reports of Evenhand.
//!
//! The binary `evenhand-fleet` is a thin shell over [`cli::Cli`].

pub mod bench;
pub mod calc;
pub mod cli;
mod error;

pub use error::FleetError;
