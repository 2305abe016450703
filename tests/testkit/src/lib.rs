//! Parts that the tests of several crates share.
//!
//! | module | content | feature |
//! |---|---|---|
//! | [`scripted_node`] | a node that answers by a script | |
//! | [`mosquitto`] | a Mosquitto process of its own | |
//! | `coordinator_config` | a small federation that does not end by itself | `coordinator` |
//! | `federation` | federations driven step by step, killed, or fed with arbitrary inputs | `federation` |
#![allow(clippy::unwrap_used)]

#[cfg(feature = "coordinator")]
pub mod coordinator_config;
#[cfg(feature = "federation")]
#[allow(missing_docs)]
pub mod federation;
pub mod scripted_node;

pub use evenhand_link::testing as mosquitto;
