//! Federations under test: scripted, killed and restored, or fed with arbitrary inputs.

pub mod crash;
pub mod promises;
pub mod scripted;

use evenhand_federation::strategy::Strategy;

/// A strategy that has not seen a round yet.
pub type NewStrategy = fn() -> Box<dyn Strategy>;
