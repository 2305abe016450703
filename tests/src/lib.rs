//! Integration tests of Evenhand over real brokers, processes and devices: what several of them need.
#![allow(clippy::unwrap_used)]

pub mod browser;
pub mod extending;
pub mod houses;
pub mod http;
pub mod rabbit;
pub mod recorder;
pub mod synthetic;

use std::path::PathBuf;

/// A folder for what tests leave behind for people to look at.
pub fn artefacts() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target"), PathBuf::from);
    let folder = target.join("artefacts");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
