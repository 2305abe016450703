//! Side series of the real program: a load to leave out, and a covariate.

use std::fmt::Write as _;
use std::process::Command;

use super::*;
use crate::support::coordinator::ScriptedCoordinator;

const HOUR_MS: i64 = 3_600_000;

/// What the house draws without its car.
const REST: f64 = 2.0;

fn car(hour: i64) -> f64 {
    if hour % 24 < 5 && hour % 7 < 3 { 8.0 } else { 0.0 }
}

/// Writes a recorded series of hours.
fn record(folder: &Path, name: &str, value: impl Fn(i64) -> f64) {
    let mut text = "time,value\n".to_owned();
    for hour in 1..=24 * 20 {
        writeln!(text, "{},{}", hour * HOUR_MS, value(hour)).unwrap();
    }
    std::fs::write(folder.join(name), text).unwrap();
}

/// The newest forecast in the status: time of issue and all quantiles.
fn forecast(config: &Path) -> (i64, Vec<f64>) {
    let output = Command::new(PROGRAM).args(["status", "--json", "--config"]).arg(config).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    fn find<'a>(json: &'a serde_json::Value, key: &str) -> Option<&'a serde_json::Value> {
        let fields = json.as_object()?;
        fields.get(key).or_else(|| fields.values().find_map(|field| find(field, key)))
    }
    let vector = find(&json, "vector").unwrap();
    let rows = vector["values"].as_array().unwrap().iter().flat_map(|row| row.as_array().unwrap());
    (vector["issued_ms"].as_i64().unwrap(), rows.map(|value| value.as_f64().unwrap()).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_car_draws_is_left_out_before_and_after_a_restart() {
    let (broker, folder) = (Mosquitto::start(), tempfile::tempdir().unwrap());
    let folder = folder.path();
    record(folder, "load.csv", |hour| REST + car(hour));
    record(folder, "car.csv", car);
    record(folder, "temperature.csv", |hour| (hour % 24) as f64);
    let source = |name: &str| {
        let path = folder.join(name);
        format!("kind = \"csv\"\npath = {path:?}\ntime_format = \"unix-ms\"\nfollow = false\n")
    };
    let config = configure(
        folder,
        &format!(
            "[node]\nid = \"m1\"\nfederation = \"town\"\nstate_folder = {:?}\n[broker]\nurl = \"{}\"\n\
             [window]\nstep_s = 3600\n[source]\n{}[[leave_out]]\nname = \"car\"\n[leave_out.source]\n{}\
             [[covariate]]\nname = \"temperature\"\n[covariate.source]\n{}\
             [pace]\nby = \"rounds\"\nreadings_per_round = 72\n[log]\nlevel = \"debug\"\n",
            folder.join("state"),
            broker.url(),
            source("load.csv"),
            source("car.csv"),
            source("temperature.csv"),
        ),
    );
    let mut coordinator = ScriptedCoordinator::connect(&broker);
    for round in 1..=3 {
        let node = NodeProcess::start(PROGRAM, &config, &[]);
        coordinator.birth().await;
        coordinator.announce(round).await;
        node.wait_for_log("for_ms", 1);
        node.terminate();
        let (ended, log) = node.wait();
        assert!(ended.success(), "{log:?}");
        let (issued_ms, quantiles) = forecast(&config);
        assert_eq!((issued_ms, quantiles.len()), (i64::from(round) * 72 * HOUR_MS, 24 * 3));
        assert!(quantiles.iter().all(|value| (value - REST).abs() < 1e-5), "round {round}: {quantiles:?}");
    }
}
