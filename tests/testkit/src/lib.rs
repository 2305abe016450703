//! Parts that the tests of several crates share.
//!
//! | module | content | feature |
//! |---|---|---|
//! | [`scripted_node`] | a node that answers by a script | |
//! | [`mosquitto`] | a Mosquitto process of its own | |
//! | `coordinator_config` | a small federation that does not end by itself | `coordinator` |
#![allow(clippy::unwrap_used)]

#[cfg(feature = "coordinator")]
pub mod coordinator_config;
pub mod scripted_node;

pub use evenhand_link::testing as mosquitto;
