//! Simulated fleets, experiments, calculators and reports of Evenhand.
//!
//! The binary `evenhand-fleet` is a thin shell over [`cli::Cli`]. A run is planned ([`demo::Plan`]), carried by a
//! [`transport`], seen round by round by a [`watch::Watch`] with the help of an [`observer::Observer`], and ends as an
//! [`outcome::Outcome`], from which [`table`], JSON and [`report`] are made.

pub mod bench;
pub mod calc;
pub mod cli;
pub mod corruption;
pub mod data;
pub mod demo;
mod error;
pub mod experiment;
pub mod observer;
pub mod paper;
mod pending;
pub mod progress;
mod rules;
mod signal;
pub mod stream;
pub mod table;
pub mod transport;
pub mod watch;

pub use error::FleetError;
pub use evenhand_report as report;
pub use evenhand_report::outcome;
