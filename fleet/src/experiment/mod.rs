//! The paper's experiments: one setup, many trials.

pub mod setup;
pub mod trial;
