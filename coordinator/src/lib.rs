//! The coordinator of an Evenhand federation: contributions, stop rule, incentives.
pub mod fairness;
pub mod federation;
