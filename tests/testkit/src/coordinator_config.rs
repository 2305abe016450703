//! The configuration of a small federation that explores three rounds and does not end by itself.

use std::path::PathBuf;

use evenhand_coordinator::config::{AccessConfig, CoordinatorConfig};
use evenhand_federation::Policy;

/// Three nodes on the embedded broker at `broker_port`, with their state in `state`.
pub fn endless(state: PathBuf, broker_port: u16) -> CoordinatorConfig {
    let mut config = CoordinatorConfig::default();
    config.federation.policy = Policy::Paper;
    config.federation.nodes_min = 3;
    config.federation.rounds = 1_000_000;
    config.federation.round_deadline_ms = 3_600_000;
    config.exploring.tested_nodes = 1;
    config.exploring.window = 2;
    config.exploring.rounds_max = 3;
    config.exploiting.k = 1;
    config.broker.listen = ([127, 0, 0, 1], broker_port).into();
    config.broker.access = AccessConfig::Open;
    config.state.folder = state;
    config
}
