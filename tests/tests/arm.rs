//! The ARM binaries of the node, under qemu, beside native nodes over a real broker.
//!
//! `tests/run arm` builds them first, by `cross/build`; without them these tests fail.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command};

use evenhand_federation::{Rules, TrainingConfig};
use evenhand_fleet::sim::Interrupt;
use evenhand_fleet::sim::RunEnd;
use evenhand_fleet::sim::demo::{DemoConfig, DemoPlan};
use evenhand_fleet::sim::fleet::{HouseholdFleet, HouseholdNode};
use evenhand_fleet::sim::mqtt::{self, MqttRunOptions};
use evenhand_link::testing::Mosquitto;
use evenhand_protocol::identity::{FederationId, NodeId};
use evenhand_protocol::message::{Phase, Update};
use evenhand_tests::houses::Houses;
use tempfile::TempDir;

/// Rust's name of the target, the emulator's, and the C library's folder. The first is built with tract, the second lean.
const PLATFORMS: [(&str, &str, &str); 2] = [
    ("aarch64-unknown-linux-gnu", "qemu-aarch64-static", "/usr/aarch64-linux-gnu"),
    ("armv7-unknown-linux-gnueabihf", "qemu-arm-static", "/usr/arm-linux-gnueabihf"),
];

/// What a gateway's flash has to spare.
const BYTES_MAX: u64 = 12 << 20;

/// Where `cross/build` put the binary for a target.
fn binary(target: &str) -> PathBuf {
    let built = std::env::var_os("EVENHAND_CROSS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/cross")),
        PathBuf::from,
    );
    let binary = built.join(target).join("release/evenhand-node");
    assert!(binary.exists(), "{} is missing; tests/run arm builds it", binary.display());
    binary
}

/// `evenhand-node` for a platform of [`PLATFORMS`], emulated.
fn emulated((target, emulator, libraries): (&str, &str, &str)) -> Command {
    let mut command = Command::new(emulator);
    command.arg("-L").arg(libraries).arg(binary(target));
    command
}

#[test]
fn the_binaries_are_small() {
    for (target, ..) in PLATFORMS {
        let bytes = std::fs::metadata(binary(target)).unwrap().len();
        assert!(bytes <= BYTES_MAX, "{target}: {bytes} bytes");
    }
}

/// Starts `house` on a platform; its configuration is kept in `folder`.
fn start(
    fleet: &HouseholdFleet,
    house: &HouseholdNode,
    platform: (&str, &str, &str),
    url: &str,
    folder: &TempDir,
) -> Child {
    let file = folder.path().join(format!("{}.toml", house.id));
    std::fs::write(&file, toml::to_string(&fleet.node_config(house, url)).unwrap()).unwrap();
    emulated(platform).args(["run", "--config"]).arg(file).spawn().expect("the emulator is installed")
}

#[test]
fn the_binaries_tell_their_version_and_check_their_configuration() {
    for (platform, engine) in PLATFORMS.into_iter().zip(["tract", "burn-flex"]) {
        let version = emulated(platform).arg("--version").output().unwrap();
        let said = String::from_utf8(version.stdout).unwrap();
        assert!(
            said.starts_with(concat!("evenhand-node ", env!("CARGO_PKG_VERSION"))),
            "{platform:?}: {said}"
        );
        assert!(said.ends_with(&format!("; forecasts by {engine}\n")), "{platform:?}: {said}");

        let folder = TempDir::new().unwrap();
        let file = folder.path().join("node.toml");
        std::fs::write(&file, emulated(platform).arg("print-config").output().unwrap().stdout).unwrap();
        let checked = emulated(platform).args(["check-config", "--config"]).arg(&file).output().unwrap();
        assert!(checked.status.success(), "{platform:?}: {checked:?}");
        std::fs::write(&file, "[node]\nidd = 1\n").unwrap();
        let checked = emulated(platform).args(["check-config", "--config"]).arg(&file).output().unwrap();
        assert_eq!(checked.status.code(), Some(78), "{platform:?}: {checked:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arm_nodes_explore_and_exploit_beside_native_ones_and_compute_what_they_compute() {
    let broker = Mosquitto::start();
    let federation = FederationId::new("arm").unwrap();
    let args = DemoConfig {
        policy: evenhand_federation::Policy::Paper,
        nodes: 5,
        rounds: 16,
        window: Some(4),
        tested_nodes: Some(2),
        k: Some(3),
        ..Default::default()
    };
    let (mut fleet, _) = DemoPlan::new(&args).unwrap().fleet(federation).unwrap();
    // Gradients are compared, not what ten steps make of their last digits.
    let mut settings = (*fleet.rules).clone();
    let TrainingConfig { loss, samples_max, .. } = settings.training;
    settings.training = TrainingConfig { loss, samples_max, ..TrainingConfig::plain_gradient() };
    fleet.rules = Rules::new(settings).unwrap();
    // Each ARM node has a native one beside it that measures the same household and draws its rows with the same seed.
    let twins = fleet.nodes.split_off(fleet.nodes.len() - PLATFORMS.len());
    let natives = fleet.nodes.split_off(fleet.nodes.len() - PLATFORMS.len());
    let beside = natives.iter().zip(&twins).map(|(native, twin)| {
        let mut config = fleet.node_config(twin, &broker.url()).with_derived_seed();
        config.node.id = native.id.clone();
        config
    });
    let houses = Houses::start(beside.collect());
    let folder = TempDir::new().unwrap();
    let mut devices: Vec<Child> = (twins.iter().zip(PLATFORMS))
        .map(|(house, platform)| start(&fleet, house, platform, &broker.url(), &folder))
        .collect();

    let mut phases = BTreeMap::new();
    let mut received: BTreeMap<(u32, NodeId), Update> = BTreeMap::new();
    let mut drawn: BTreeMap<NodeId, u32> = BTreeMap::new();
    let mut on_round = |closed: &evenhand_federation::RoundEvidence, _: f64| {
        let record = &closed.round;
        phases.insert(record.round, record.phase);
        for (node, update) in &closed.updates {
            let node = record.nodes[node.get()].node.clone();
            received.insert((record.round, node), update.to_message(record.round));
        }
        if record.phase == Phase::Exploiting {
            for row in record.asked() {
                *drawn.entry(row.node.clone()).or_default() += 1;
            }
        }
        Ok(())
    };
    let options = MqttRunOptions { broker: Some(broker.url()), processes: false };
    let ran = mqtt::run(&fleet, &options, &Interrupt::default(), &mut on_round).await.unwrap();

    assert_eq!(ran.ended, RunEnd::Complete);
    assert!(phases.values().any(|phase| *phase == Phase::Exploiting), "{phases:?}");
    let dim = fleet.initial_model.weights.len();
    for ((house, native), (target, ..)) in twins.iter().zip(&natives).zip(PLATFORMS) {
        assert!(drawn.contains_key(&house.id), "{target} was never drawn: {drawn:?}");
        let mut compared = 0;
        for (&round, _) in phases.iter().filter(|(_, phase)| **phase == Phase::Exploring) {
            let here = &received[&(round, native.id.clone())];
            let there = &received[&(round, house.id.clone())];
            assert_eq!(here.samples, there.samples, "{target}, round {round}");
            let (here, there) = (here.vector.decode(dim).unwrap(), there.vector.decode(dim).unwrap());
            let norm = here.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
            let apart = here.iter().zip(&there).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt();
            assert!(norm > 0.0 && apart <= 1e-5 * norm, "{target}, round {round}: {apart} of {norm}");
            compared += 1;
        }
        assert!(compared > 0, "no round was compared");
    }
    houses.stop().await;
    for device in &mut devices {
        let stopped = Command::new("kill").arg(device.id().to_string()).status().unwrap();
        assert!(stopped.success(), "the node lives until it is asked to leave");
        assert!(device.wait().unwrap().success(), "a node that is asked to leave ends well");
    }
}
