//! Faults of devices, disks, clocks and brokers: each is survived, and logged once.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use evenhand_link::rumqttc_options;
use evenhand_node::journal;
use evenhand_node::reading::InputBatch;
use evenhand_node::shell::StatusSnapshot;
use evenhand_protocol::chunk::{PAYLOAD_BYTES_MAX, Transfer};
use evenhand_protocol::envelope;
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{Answer, Declined, Manifest, Message, Order, Phase, Train, UpdateKind};
use evenhand_protocol::topic::{self, Channel};
use rumqttc::{Client, Event, Packet, QoS};

use super::*;
use crate::support::coordinator::{ScriptedCoordinator, train};

/// Publishes `payload` so often, as a client of its own; all are with the broker when this returns.
fn publish(broker: &Mosquitto, topic: &str, payload: &[u8], times: usize) {
    let (client, mut connection) =
        Client::new(rumqttc_options(&broker.broker(), None, "stranger").unwrap(), 64);
    for _ in 0..times {
        client.publish(topic, QoS::AtLeastOnce, false, payload).unwrap();
    }
    // Its client waits in a way of its own, for which it needs a thread of its own.
    let acknowledge = move || {
        let acknowledged = |event: &Result<Event, _>| matches!(event, Ok(Event::Incoming(Packet::PubAck(_))));
        assert_eq!(connection.iter().filter(acknowledged).take(times).count(), times);
    };
    std::thread::spawn(acknowledge).join().unwrap();
}

/// Ends a node that must have lived until now.
fn end(node: NodeProcess) -> Vec<String> {
    node.terminate();
    let (ended, log) = node.wait();
    assert!(ended.success(), "{log:?}");
    log
}

fn count(log: &[String], text: &str) -> usize {
    log.iter().filter(|line| line.contains(text)).count()
}

#[tokio::test]
async fn a_coordinator_of_another_version() {
    let (broker, folder) = (Mosquitto::start(), tempfile::tempdir().unwrap());
    let mut coordinator = ScriptedCoordinator::connect(&broker);
    let node = start(&broker, folder.path(), "", "");
    coordinator.welcome().await;
    let manifest = Message::Manifest(Manifest {
        federation: coordinator.federation.clone(),
        graph: coordinator.graph(),
        parameters: 1,
        phase: Phase::Exploring,
        round: 7,
    });
    let mut message = envelope::encode(&manifest);
    message[0] = envelope::VERSION as u8 + 1;
    let packet = Transfer::new(message, PAYLOAD_BYTES_MAX).unwrap().chunk(0).unwrap();
    publish(&broker, &topic::manifest(&coordinator.federation), &packet, 5);
    publish(&broker, &topic::node(&coordinator.federation, &coordinator.node, Channel::Task), b"rubbish", 5);
    coordinator.train(1, &coordinator.model.initial_weights(), true).await;
    assert_eq!(coordinator.update().await.round, 1, "its own coordinator is understood as before");
    let log = end(node);
    // Nobody vouches for either: one line a minute.
    assert_eq!(count(&log, "ignoring a message that is not the coordinator's"), 1, "{log:?}");
}

#[tokio::test]
async fn a_model_that_does_not_fit() {
    for limit in ["parameters_max = 100", "memory_bytes_max = 20000"] {
        let (broker, folder) = (Mosquitto::start(), tempfile::tempdir().unwrap());
        let mut coordinator = ScriptedCoordinator::connect(&broker);
        let node = start(&broker, folder.path(), limit, "");
        coordinator.welcome().await;
        for round in 1..=3 {
            coordinator.train(round, &coordinator.model.initial_weights(), true).await;
            let declined = Answer::Decline { round, reason: Declined::ModelUnfit };
            assert_eq!(coordinator.answer().await, declined, "{limit}");
        }
        let log = end(node);
        assert_eq!(count(&log, "does not fit this node"), 1, "{limit}: {log:?}");
    }
}

#[tokio::test]
async fn a_model_that_is_too_long_to_be_read() {
    let (broker, folder) = (Mosquitto::start(), tempfile::tempdir().unwrap());
    let mut coordinator = ScriptedCoordinator::connect(&broker);
    let node = start(&broker, folder.path(), "parameters_max = 5000", "");
    coordinator.welcome().await;
    for round in 1..=2 {
        coordinator.announce_model(round, coordinator.graph(), 1_000_000).await;
        coordinator.train(round, &vec![0.5; 1_000_000], true).await;
        assert_eq!(coordinator.answer().await, Answer::Decline { round, reason: Declined::ModelUnfit });
    }
    // Once a round, however many pieces it came in; and what can be read is answered as before.
    coordinator.train(3, &coordinator.model.initial_weights(), true).await;
    assert_eq!(coordinator.update().await.round, 3);
    end(node);
}

#[tokio::test]
async fn a_batch_that_does_not_fit() {
    let (broker, folder) = (Mosquitto::start(), tempfile::tempdir().unwrap());
    let mut coordinator = ScriptedCoordinator::connect(&broker);
    // Enough for the model itself, not for what it computes from a batch.
    let text = configuration(&broker, folder.path(), "memory_bytes_max = 60000", "");
    let config = configure(folder.path(), &text.replace("lags = 8", "lags = 64"));
    let node = NodeProcess::start(PROGRAM, &config, &[]);
    coordinator.welcome().await;
    let weights = coordinator.model.initial_weights();
    for round in 3..=5 {
        coordinator.train(round, &weights, true).await;
        assert_eq!(coordinator.answer().await, Answer::Decline { round, reason: Declined::ModelUnfit });
    }
    let log = end(node);
    assert_eq!(count(&log, "training failed"), 1, "{log:?}");
}

#[tokio::test]
async fn a_training_that_would_never_end() {
    let (broker, folder) = (Mosquitto::start(), tempfile::tempdir().unwrap());
    let mut coordinator = ScriptedCoordinator::connect(&broker);
    let node = start(&broker, folder.path(), "epochs_max = 4294967295", "");
    coordinator.welcome().await;
    let weights = coordinator.model.initial_weights();
    for round in 1..=2 {
        let kind = UpdateKind::Epochs { epochs: u32::MAX, learning_rate: 1e-6, momentum: 0.0 };
        let endless = Train { kind, deadline_ms: 200, ..train(round, &weights, true) };
        coordinator.order(Order::Train(endless)).await;
        assert_eq!(coordinator.answer().await, Answer::Decline { round, reason: Declined::TrainingFailed });
    }
    coordinator.train(3, &weights, false).await;
    assert_eq!(coordinator.update().await.round, 3, "there is a seat for the next one");
    let log = end(node);
    assert_eq!(count(&log, "training failed"), 1, "{log:?}");
}

/// An order that only a malicious coordinator gives, or somebody in its name.
fn endless(round: u32, weights: &[f32]) -> Order {
    let kind = UpdateKind::Epochs { epochs: u32::MAX, learning_rate: 1e-6, momentum: 0.0 };
    Order::Train(Train { kind, deadline_ms: u32::MAX, ..train(round, weights, true) })
}

#[tokio::test]
async fn orders_without_bounds() {
    let (broker, folder) = (Mosquitto::start(), tempfile::tempdir().unwrap());
    let mut coordinator = ScriptedCoordinator::connect(&broker);
    let node = start(&broker, folder.path(), "", "");
    coordinator.welcome().await;
    let weights = coordinator.model.initial_weights();
    for round in 1..=5 {
        coordinator.order(endless(round, &weights)).await;
        assert_eq!(coordinator.answer().await, Answer::Decline { round, reason: Declined::TooMuchWork });
    }
    coordinator.train(6, &weights, false).await;
    assert_eq!(coordinator.update().await.round, 6);
    let log = end(node);
    assert_eq!(count(&log, "more epochs than node.epochs_max"), 1, "{log:?}");
}

#[tokio::test]
async fn a_newer_round_during_a_training_that_would_never_end() {
    let (broker, folder) = (Mosquitto::start(), tempfile::tempdir().unwrap());
    let mut coordinator = ScriptedCoordinator::connect(&broker);
    let node = start(&broker, folder.path(), "epochs_max = 4294967295", "");
    coordinator.welcome().await;
    let weights = coordinator.model.initial_weights();
    for round in [1, 3] {
        coordinator.order(endless(round, &weights)).await;
        coordinator.train(round + 1, &weights, false).await;
        assert_eq!(coordinator.update().await.round, round + 1, "the one before was ended");
    }
    let log = end(node);
    // An order that is overtaken before its training begins ends without a line.
    assert!(count(&log, "the coordinator went on to a newer round") <= 2, "once each: {log:?}");
}

/// Readings, forecasts and the model, whoever ran the node with whatever umask before.
#[tokio::test]
async fn the_state_folder_is_its_owners_alone() {
    let (broker, folder) = (Mosquitto::start(), tempfile::tempdir().unwrap());
    let mut coordinator = ScriptedCoordinator::connect(&broker);
    let state = folder.path().join("state");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let files = || {
        let mut files: Vec<_> = fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.extend(fs::read_dir(state.join("models")).unwrap().map(|entry| entry.unwrap().path()));
        files
    };
    let assert_private = || {
        assert_eq!(mode(&state), 0o700);
        for path in files() {
            let expected = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode(&path), expected, "{}", path.display());
        }
    };
    let node = start(&broker, folder.path(), "", "");
    coordinator.welcome().await;
    coordinator.train(1, &coordinator.model.initial_weights(), true).await;
    coordinator.update().await;
    let log = end(node);
    assert_eq!(count(&log, "other users had access"), 0, "{log:?}");
    assert!(files().len() >= 6, "{:?}", files());
    assert_private();
    for path in
        files().into_iter().filter(|path| path.parent() == Some(state.as_path())).chain([state.clone()])
    {
        let loose = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(loose)).unwrap();
    }
    for said in [1, 0] {
        let node = start(&broker, folder.path(), "", "");
        coordinator.birth().await;
        let log = end(node);
        assert_eq!(count(&log, "other users had access"), said, "{log:?}");
        assert_private();
    }
}

/// Manifests with any graph and any round, between orders that are answered.
#[tokio::test]
async fn ten_thousand_forged_manifests() {
    let (broker, folder) = (Mosquitto::start(), tempfile::tempdir().unwrap());
    let mut coordinator = ScriptedCoordinator::connect(&broker);
    let node = start(&broker, folder.path(), "", "");
    coordinator.welcome().await;
    let weights = coordinator.model.initial_weights();
    let mut resident = Vec::new();
    let mut round = 0;
    for number in 0..10_000u32 {
        if number % 2500 == 0 {
            round = number + 1;
            coordinator.announce(round).await;
            coordinator.train(round, &weights, true).await;
            let answered = |message| match message {
                Message::Answer(Answer::Update(update)) if update.round == number + 1 => Some(()),
                Message::Answer(Answer::NeedWeights { .. }) => panic!("the order has weights"),
                _ => None,
            };
            coordinator.receive(answered).await;
            assert!(node.threads() <= 8, "{} threads", node.threads());
            resident.push(node.resident_kib());
        }
        let graph = Digest::of(&number.to_le_bytes());
        coordinator.announce_graph(round + number % 7, graph).await;
    }
    assert!(resident[3] < resident[1] + (8 << 10), "{resident:?} KiB");
    end(node);
}

#[tokio::test]
async fn a_broker_that_comes_and_goes() {
    let (mut broker, folder) = (Mosquitto::start(), tempfile::tempdir().unwrap());
    let mut coordinator = ScriptedCoordinator::connect(&broker);
    let node = start(&broker, folder.path(), "", "");
    let session = coordinator.welcome().await;
    for _ in 0..2 {
        broker.kill();
        broker.restart();
        assert_eq!(coordinator.birth().await.0, session);
    }
    let log = end(node);
    let said = count(&log, "no connection to the broker");
    assert!((2..=6).contains(&said), "each cause once for each time: {log:?}");
}

/// The status of a node that has ended.
fn report(folder: &Path) -> StatusSnapshot {
    StatusSnapshot::read(&folder.join("state")).unwrap()
}

/// Waits until so many readings are in the journal.
fn wait_for_journal(folder: &Path, readings: usize) {
    let path = folder.join("state/journal");
    let noted = || {
        let (entries, _) = journal::read(&fs::read(&path).unwrap_or_default());
        entries.iter().map(|entry| entry.batch.len()).sum::<usize>()
    };
    while noted() < readings {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The time of step 0, a multiple of its length: 2001-05-17.
const BEGIN_S: u64 = 990_000_000;

/// A node that follows a file of JSON lines, which is empty.
fn follower(broker: &Mosquitto, folder: &Path) -> (NodeProcess, fs::File) {
    let path = folder.join("load.jsonl");
    let lines = OpenOptions::new().create(true).append(true).open(&path).unwrap();
    let text = format!(
        "[node]\nid = \"m1\"\nfederation = \"town\"\nstate_folder = {:?}\n[broker]\nurl = \"{}\"\n\
         [privacy]\nreadings_min = 1\n[window]\nsamples = \"lags\"\nlags = 2\nhistory_steps = 50\n[source]\nkind = \"jsonl\"\npath = {path:?}\ntime_format = \"unix-s\"\n",
        folder.join("state"),
        broker.url()
    );
    (NodeProcess::start(PROGRAM, &configure(folder, &text), &[]), lines)
}

fn write(lines: &mut fs::File, steps: impl Iterator<Item = u64>) {
    let text: String =
        steps.map(|step| format!("{{\"time\":{},\"value\":{}}}\n", BEGIN_S + step * 900, step % 7)).collect();
    lines.write_all(text.as_bytes()).unwrap();
}

#[test]
fn a_clock_that_jumps_ahead_and_back() {
    let (broker, folder) = (Mosquitto::start(), tempfile::tempdir().unwrap());
    let (node, mut lines) = follower(&broker, folder.path());
    write(&mut lines, 0..20);
    write(&mut lines, 700_000..700_020);
    node.wait_for_log("clock jump in the readings", 1);
    write(&mut lines, 20..60);
    node.wait_for_log("clock jump in the readings", 2);
    let log = end(node);
    assert_eq!(count(&log, "clock jump in the readings"), 2, "{log:?}");
    let report = report(folder.path());
    assert_eq!(
        report.readings.accepted,
        20 + 20 + 40 - 9,
        "nine were kept out until the new time was believed"
    );
}

#[test]
fn a_source_that_is_not_there_yet() {
    let (broker, folder) = (Mosquitto::start(), tempfile::tempdir().unwrap());
    let path = folder.path().join("load.csv");
    let text = configuration(&broker, folder.path(), "", "");
    let (before, _) = text.split_once("[source]").unwrap();
    let text = format!("{before}[source]\nkind = \"csv\"\npath = {path:?}\ntime_format = \"unix-s\"\n");
    let node = NodeProcess::start(PROGRAM, &configure(folder.path(), &text), &[]);
    node.wait_for_log("source failed", 1);
    fs::write(&path, "time,value\n990000900,1\nrubbish\n990001800,2\n").unwrap();
    node.wait_for_log("source recovered", 1);
    let log = end(node);
    assert_eq!(count(&log, "source failed"), 1, "{log:?}");
    let report = report(folder.path());
    assert_eq!((report.readings.accepted, report.source.malformed), (2, 1));
}

#[test]
fn a_full_disk() {
    let (broker, folder) = (Mosquitto::start(), tempfile::tempdir().unwrap());
    let (node, mut lines) = follower(&broker, folder.path());
    let state = folder.path().join("state");
    write(&mut lines, 1..5);
    wait_for_journal(folder.path(), 4);
    // From now on there is no room for another byte in the journal; the state is written in its place.
    fs::remove_file(state.join("journal")).unwrap();
    symlink("/dev/full", state.join("journal")).unwrap();
    write(&mut lines, 5..10);
    node.wait_for_log("cannot write to the state folder", 1);
    fs::remove_file(state.join("journal")).unwrap();
    // The next reading finds the room, if none of the last ones did.
    write(&mut lines, 10..11);
    node.wait_for_log("writable again", 1);
    write(&mut lines, 11..16);
    wait_for_journal(folder.path(), 5);
    assert_eq!(node.said("cannot write to the state folder"), 1);
    node.kill();

    // What it knows now it knows from its disk.
    lines.set_len(0).unwrap();
    let (node, _) = follower(&broker, folder.path());
    node.wait_for_log("connected to broker", 1);
    let log = end(node);
    assert_eq!(count(&log, "incomplete"), 0, "{log:?}");
    assert_eq!(report(folder.path()).readings.accepted, 15, "nothing was lost, nothing counted twice");
}

/// A node that receives readings with their time on `meter/power`.
fn listener(broker: &Mosquitto, folder: &Path) -> NodeProcess {
    let text = format!(
        "[node]\nid = \"m1\"\nfederation = \"town\"\nstate_folder = {:?}\n[broker]\nurl = \"{}\"\n\
         [privacy]\nreadings_min = 1\n[window]\nsamples = \"lags\"\nlags = 2\n[source]\nkind = \"mqtt\"\ntopic = \"meter/power\"\nvalue = \"v\"\ntime = \"t\"\ntime_format = \"unix-s\"\n",
        folder.join("state"),
        broker.url()
    );
    NodeProcess::start(PROGRAM, &configure(folder, &text), &[])
}

/// Publishes the readings of these steps; all are with the broker when this returns.
fn meter(broker: &Mosquitto, steps: std::ops::Range<usize>) {
    let (client, mut connection) = Client::new(rumqttc_options(&broker.broker(), None, "meter").unwrap(), 64);
    let count = steps.len();
    let acknowledged = std::thread::spawn(move || {
        let acknowledged = |event: &Result<Event, _>| matches!(event, Ok(Event::Incoming(Packet::PubAck(_))));
        assert_eq!(connection.iter().filter(acknowledged).take(count).count(), count);
    });
    for step in steps {
        let reading = format!("{{\"t\":{},\"v\":{}}}", BEGIN_S + step as u64 * 900, step % 7);
        client.publish("meter/power", QoS::AtLeastOnce, false, reading).unwrap();
    }
    acknowledged.join().unwrap();
}

#[test]
fn a_kill_while_it_catches_up_with_its_broker() {
    const READINGS: usize = 3_000;
    let broker = Mosquitto::start_with(
        "allow_anonymous true\nmax_queued_messages 0\nmax_inflight_messages 0\n",
        false,
    );
    let folder = tempfile::tempdir().unwrap();
    // The broker knows it from now on, and keeps what it misses.
    let node = listener(&broker, folder.path());
    let journal = folder.path().join("state/journal");
    let times = || -> Vec<usize> {
        let (entries, _) = journal::read(&fs::read(&journal).unwrap_or_default());
        let readings = entries.into_iter().flat_map(|entry| match entry.batch {
            InputBatch::Readings(readings) => readings,
            InputBatch::Rows(_) => panic!("rows"),
        });
        readings.map(|reading| (reading.time_ms as usize - 1000 * BEGIN_S as usize) / 900_000).collect()
    };
    // It may not have subscribed yet.
    let mut first = 0;
    while times().is_empty() {
        first += 1;
        meter(&broker, first..first + 1);
    }
    node.kill();
    meter(&broker, first + 1..READINGS);
    for seen in [2, 500, 1_000, 2_000] {
        let node = listener(&broker, folder.path());
        wait_for_journal(folder.path(), seen);
        node.kill();
    }
    let node = listener(&broker, folder.path());
    // Comes behind all the others.
    meter(&broker, READINGS..READINGS + 1);
    while times().last() != Some(&READINGS) {
        std::thread::sleep(Duration::from_millis(10));
    }
    node.kill();
    let (times, expected) = (times(), (1..=READINGS).collect::<Vec<_>>());
    assert_eq!(times, expected[times[0] - 1..], "each reading once, in order");
}

#[test]
fn a_reading_beyond_all_measure() {
    let (broker, folder) = (Mosquitto::start(), tempfile::tempdir().unwrap());
    let (node, mut lines) = follower(&broker, folder.path());
    write(&mut lines, 1..201);
    lines.write_all(format!("{{\"time\":{},\"value\":1e9}}\n", BEGIN_S + 201 * 900).as_bytes()).unwrap();
    node.wait_for_log("more than a hundred times as large", 1);
    write(&mut lines, 202..240);
    wait_for_journal(folder.path(), 239);
    let log = end(node);
    assert_eq!(count(&log, "more than a hundred times as large"), 1, "{log:?}");
    assert_eq!(report(folder.path()).readings.refused, 1);
}
