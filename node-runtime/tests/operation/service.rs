//! The node as a service: systemd, Prometheus, logs.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;

use evenhand_link::testing::free_port;

use super::*;
use crate::support::coordinator::ScriptedCoordinator;

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_finishes_the_publish_and_leaves() {
    let (broker, folder) = (Mosquitto::start(), tempfile::tempdir().unwrap());
    let mut coordinator = ScriptedCoordinator::connect(&broker);
    let node = start(&broker, folder.path(), "", "[log]\nlevel = \"debug\"\n");
    let session = coordinator.welcome().await;
    let weights = coordinator.model.initial_weights();
    coordinator.train(1, &weights, true).await;
    coordinator.update().await;
    coordinator.train(2, &weights, false).await;
    node.wait_for_log("training", 2);
    broker.suspend();
    // The graph was asked for, and two updates answered.
    node.wait_for_log("/update", 3);
    node.terminate();
    broker.resume();
    assert_eq!(coordinator.update().await.round, 2, "what was begun was finished");
    assert_eq!(coordinator.death().await, session);
    let (ended, log) = node.wait();
    assert!(ended.success() && log.last().is_some_and(|line| line.contains("stopped")), "{log:?}");
    assert!(!log.iter().any(|line| line.contains("before all messages were acknowledged")), "{log:?}");
}

#[test]
fn systemd_is_told_that_the_node_is_ready_lives_and_stops() {
    let (broker, folder) = (Mosquitto::start(), tempfile::tempdir().unwrap());
    let path = folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    let receive = || {
        let mut buffer = [0; 256];
        let count = manager.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..count].to_vec()).unwrap()
    };
    let config = configure(folder.path(), &configuration(&broker, folder.path(), "", ""));
    let environment = [("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "100000")];
    let node = NodeProcess::start(PROGRAM, &config, &environment);
    assert!(receive().starts_with("READY=1\n"));
    for _ in 0..5 {
        assert_eq!(receive(), "WATCHDOG=1");
    }
    node.terminate();
    while receive() != "STOPPING=1" {}
    assert!(node.wait().0.success());
}

fn scrape(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: node\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    Some(page)
}

#[tokio::test]
async fn prometheus_sees_how_the_node_is_doing() {
    let (broker, folder) = (Mosquitto::start(), tempfile::tempdir().unwrap());
    let mut coordinator = ScriptedCoordinator::connect(&broker);
    let port = free_port();
    let node = start(&broker, folder.path(), "", &format!("[metrics]\nlisten = \"127.0.0.1:{port}\"\n"));
    coordinator.welcome().await;
    coordinator.train(3, &coordinator.model.initial_weights(), true).await;
    coordinator.update().await;
    let page = scrape(port, "/metrics").unwrap();
    let labels = "{node=\"m1\",federation=\"town\"}";
    let accepted = format!("evenhand_node_readings_accepted_total{labels} {}\n", 3 * PER_ROUND);
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains(&accepted), "{page}");
    assert!(page.contains(&format!("evenhand_node_connected{labels} 1\n")), "{page}");
    assert!(scrape(port, "/").unwrap().starts_with("HTTP/1.1 404"));
    node.terminate();
    assert!(node.wait().0.success());
}

#[test]
fn a_log_in_json_is_one_object_a_line() {
    let (broker, folder) = (Mosquitto::start(), tempfile::tempdir().unwrap());
    let node = start(&broker, folder.path(), "", "[log]\nformat = \"json\"\n");
    node.wait_for_log("connected to broker", 1);
    node.terminate();
    let (_, log) = node.wait();
    assert!(log.len() >= 3, "{log:?}");
    for line in log {
        let object: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert!(object["level"].is_string() && object["fields"]["message"].is_string(), "{line}");
    }
}
