//! The output of `evenhand-node status`.

use std::process::Command;

use evenhand_protocol::message::{Account, Why};

use super::*;
use crate::support::coordinator::ScriptedCoordinator;

fn status(folder: &Path, json: bool) -> String {
    let mut command = Command::new(PROGRAM);
    command.args(["status", "--config"]).arg(folder.join("node.toml"));
    if json {
        command.arg("--json");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn the_owner_sees_standing_probability_staleness_and_why() {
    let (broker, folder) = (Mosquitto::start(), tempfile::tempdir().unwrap());
    let mut coordinator = ScriptedCoordinator::connect(&broker);
    let node = start(&broker, folder.path(), "", "");
    coordinator.welcome().await;
    let account = Account {
        round: 7,
        standing: 0.25,
        standing_error: 0.01,
        sampling_probability: 0.125,
        staleness: 2,
        last_drawn: Some(5),
        drawn: 3,
        why: Why::NotDrawn,
    };
    coordinator.tell(account).await;
    let weights = coordinator.model.initial_weights();
    coordinator.train(8, &weights, true).await;
    coordinator.update().await;
    coordinator.announce(9).await;
    // The node takes in the readings of round 9, to which it owed a forecast.
    coordinator.train(9, &weights, false).await;
    coordinator.update().await;
    node.terminate();
    let (ended, log) = node.wait();
    assert!(ended.success(), "{log:?}");

    let text = status(folder.path(), false);
    for expected in [
        "measuring contributions, round 9",
        &format!("{} accepted, 0 refused", 9 * PER_ROUND),
        "0.2500 ± 0.0100",
        "12.50 %",
        "3 times, last in round 5",
        "2 rounds",
        "the draw fell on others",
        "over 1 forecasts",
    ] {
        assert!(text.contains(expected), "{expected:?} in\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&status(folder.path(), true)).unwrap();
    assert_eq!(json["account"]["last_drawn"], 5);
    assert!(json["mean_absolute_error"].as_f64().is_some_and(f64::is_finite), "{json}");
}
