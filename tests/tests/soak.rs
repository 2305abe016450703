//! A week of a meter's life at speed: the broker is killed and restarted twenty times, the node twenty times.
#![allow(clippy::unwrap_used)]

// A part of what the node's own tests use.
#[allow(dead_code)]
#[path = "../../node-runtime/tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use evenhand_link::testing::{Mosquitto, free_port};
use evenhand_protocol::message::{Answer, Life, Message, Status, Update};
use support::coordinator::ScriptedCoordinator;
use support::process::{NodeProcess, configure};

const READINGS: u64 = 7 * 24 * 4;
const KILLS: u32 = 40;
/// 2024-01-01 in UTC.
const BEGIN_S: u64 = 1_704_067_200;

/// A meter that writes a line every quarter of an hour.
struct Meter {
    file: File,
    written: u64,
}

impl Meter {
    fn start(path: &Path) -> Self {
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(b"time,value\n").unwrap();
        Self { file, written: 0 }
    }

    /// Writes up to reading number `upto`.
    fn write(&mut self, upto: u64) {
        for number in self.written + 1..=upto {
            let load =
                0.4 + 0.3 * (number as f64 / 96.0 * std::f64::consts::TAU).sin() + 0.01 * (number % 7) as f64;
            writeln!(self.file, "{},{load:.4}", BEGIN_S + number * 900).unwrap();
        }
        self.written = upto;
    }
}

/// The node, and how to start it again.
struct House {
    config: PathBuf,
    metrics: u16,
    process: Option<NodeProcess>,
}

impl House {
    fn start(&mut self) {
        self.process = Some(NodeProcess::start(env!("CARGO_BIN_EXE_node"), &self.config, &[]));
    }

    fn kill(&mut self) {
        self.process.take().unwrap().kill();
    }

    /// One figure that the node shows to Prometheus; none while it does not listen.
    fn figure(&self, name: &str) -> Option<u64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.metrics)).ok()?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").ok()?;
        let mut page = String::new();
        stream.read_to_string(&mut page).ok()?;
        let line = page.lines().find(|line| line.starts_with(&format!("evenhand_node_{name}{{")))?;
        line.rsplit_once(' ')?.1.parse().ok()
    }

    /// Waits until the node has taken in everything up to reading number `count`.
    fn wait_for(&self, count: u64) {
        while self.figure("newest_reading_seconds") != Some(BEGIN_S + count * 900) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// What the coordinator counted.
#[derive(Default)]
struct Counted {
    updates: BTreeMap<u32, Update>,
    repeated: u32,
}

impl Counted {
    /// Counts an update once however often it arrives; it must be the same each time.
    fn count(&mut self, update: Update) {
        if let Some(before) = self.updates.insert(update.round, update.clone()) {
            assert_eq!(before, update, "the same task has the same answer");
            self.repeated += 1;
        }
    }
}

/// Listens until the update of `round` is there; who is born meanwhile is asked again, as a coordinator does.
async fn hear_update(
    coordinator: &mut ScriptedCoordinator,
    round: u32,
    weights: &[f32],
    counted: &mut Counted,
) {
    while !counted.updates.contains_key(&round) {
        let message = coordinator.receive(Some).await;
        match message {
            Message::Status(Status { life: Life::Born(_), .. })
            | Message::Answer(Answer::NeedWeights { .. }) => coordinator.train(round, weights, true).await,
            Message::Answer(Answer::NeedGraph(_)) => coordinator.send_graph().await,
            Message::Answer(Answer::Update(update)) => counted.count(update),
            Message::Answer(other) => panic!("round {round}: {other:?}"),
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_week_of_crashes_loses_no_reading_and_counts_none_twice() {
    let folder = tempfile::tempdir().unwrap();
    let mut broker = Mosquitto::start();
    let mut coordinator = ScriptedCoordinator::connect(&broker);
    let mut meter = Meter::start(&folder.path().join("load.csv"));
    let metrics = free_port();
    let text = format!(
        "[node]\nid = \"m1\"\nfederation = \"town\"\nstate_folder = {:?}\n[broker]\nurl = \"{}\"\n[privacy]\nreadings_min = 1\n[window]\nsamples = \"lags\"\nlags = 8\n\
         [source]\nkind = \"csv\"\npath = {:?}\ntime_format = \"unix-s\"\n[metrics]\nlisten = \"127.0.0.1:{metrics}\"\n",
        folder.path().join("state"),
        broker.url(),
        folder.path().join("load.csv")
    );
    let mut house = House { config: configure(folder.path(), &text), metrics, process: None };
    house.start();
    let weights = coordinator.model.initial_weights();
    coordinator.announce(0).await;
    let mut counted = Counted::default();
    let mut resident_kib = Vec::new();
    for kill in 1..=KILLS {
        let upto = READINGS * u64::from(kill) / u64::from(KILLS);
        meter.write(upto - 6);
        house.wait_for(upto - 6);
        coordinator.train(kill, &weights, true).await;
        if kill % 4 < 2 {
            // Every other pair of kills comes after the answer, the others while it is being worked on.
            hear_update(&mut coordinator, kill, &weights, &mut counted).await;
            resident_kib.push(house.process.as_ref().unwrap().resident_kib());
        }
        // These are on their way to the node when it happens.
        meter.write(upto);
        if kill % 2 == 0 {
            broker.kill();
            broker.restart();
            // At once, instead of waiting ever longer for a broker that dies so often.
            coordinator = ScriptedCoordinator::connect(&broker);
        } else {
            house.kill();
            house.start();
        }
        hear_update(&mut coordinator, kill, &weights, &mut counted).await;
    }
    house.wait_for(READINGS);
    assert_eq!(house.figure("readings_accepted_total"), Some(READINGS), "none lost, none counted twice");
    assert_eq!(house.figure("readings_out_of_order_total"), Some(0));
    assert_eq!(counted.updates.keys().copied().collect::<Vec<_>>(), (1..=KILLS).collect::<Vec<_>>());
    assert!(counted.updates.values().all(|update| update.samples > 0));
    assert!(counted.repeated > 0, "updates were sent again after a reconnect");
    let (first, most) = (resident_kib[0], resident_kib.iter().copied().max().unwrap());
    assert!(most <= first + first / 4 + 8 * 1024, "memory grows: {resident_kib:?} KiB");
    let node = house.process.take().unwrap();
    node.terminate();
    let (ended, log) = node.wait();
    assert!(ended.success(), "{log:?}");
}
