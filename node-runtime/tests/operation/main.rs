//! The real program, as its operator knows it.
#![allow(clippy::unwrap_used)]

// Each test binary uses its own part of it.
#[allow(dead_code)]
#[path = "../support/mod.rs"]
mod support;

mod account;
mod commands;
mod mistakes;
mod owner;
mod service;
mod side;
mod survival;
mod tls;

use std::path::Path;

use evenhand_link::testing::Mosquitto;
use support::process::{NodeProcess, configure};

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenhand-node");
const PER_ROUND: usize = 40;

/// A node of the federation `town` that reads a household round by round; `node` and `more` add to its configuration.
fn configuration(broker: &Mosquitto, folder: &Path, node: &str, more: &str) -> String {
    format!(
        "[node]\nid = \"m1\"\nfederation = \"town\"\nstate_folder = {:?}\n{node}\n[broker]\nurl = \"{}\"\n\
         [privacy]\nreadings_min = 1\n[window]\nsamples = \"lags\"\nlags = 8\n[source]\nkind = \"household\"\n[pace]\nby = \"rounds\"\nreadings_per_round = {PER_ROUND}\n{more}",
        folder.join("state"),
        broker.url()
    )
}

fn start(broker: &Mosquitto, folder: &Path, node: &str, more: &str) -> NodeProcess {
    let config = configure(folder, &configuration(broker, folder, node, more));
    NodeProcess::start(PROGRAM, &config, &[])
}
