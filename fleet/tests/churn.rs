//! Nodes that disconnect and return delay no round.
#![allow(clippy::unwrap_used)]

use std::process::Command;

use evenhand_link::testing::Mosquitto;

#[test]
fn no_round_waits_for_disconnected_nodes() {
    let broker = Mosquitto::start();
    let output = Command::new(env!("CARGO_BIN_EXE_evenhand-fleet"))
        .args(["bench", "churn", "--nodes", "50", "--rounds", "10", "--dying", "0.2", "--json"])
        .args(["--deadline-ms", "600000", "--broker", &broker.url()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let churn: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(churn["rounds"], 10);
    let figure = |name: &str| churn[name].as_u64().unwrap();
    assert!(figure("died") + figure("absent") > 0, "{churn}");
    assert_eq!(figure("missed"), 0, "the dead are known by their will, not by the deadline: {churn}");
    assert_eq!(figure("asked"), figure("arrived") + figure("died"), "{churn}");
    assert!(figure("longest_round_ms") < 600_000);
}
