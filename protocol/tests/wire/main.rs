//! Promises of the protocol, tested on bytes.
#![allow(clippy::unwrap_used)]

mod any;
#[path = "../../fuzz/checks.rs"]
mod checks;
mod chunks;
mod codecs;
mod hostile;
mod messages;
mod names;
mod samples;

use proptest::test_runner::{Config, RngSeed};

/// The same cases in every run.
fn seeded(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(2023), failure_persistence: None, ..Config::default() }
}
