//! What others put on an open broker changes nothing: repeated messages, changed ones, those of other runs.
#![allow(clippy::unwrap_used)]

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use evenhand_federation::{Policy, RoundEvidence};
use evenhand_fleet::sim::Interrupt;
use evenhand_fleet::sim::demo::{DemoConfig, DemoPlan};
use evenhand_fleet::sim::fleet::HouseholdFleet;
use evenhand_fleet::sim::mqtt::{self, MqttRunOptions};
use evenhand_link::Broker;
use evenhand_link::testing::Mosquitto;
use evenhand_protocol::chunk::{PAYLOAD_BYTES_MAX, Transfer};
use evenhand_protocol::identity::{Digest, FederationId};
use evenhand_tests::recorder::{RecordedPacket, Recorder, send_again};
use tokio::sync::Mutex;

/// Lines that were logged in this process.
static LINES: AtomicUsize = AtomicUsize::new(0);

/// Runs of this process one at a time: memory and lines are its own.
static ALONE: Mutex<()> = Mutex::const_new(());

#[derive(Clone)]
struct LineCounter;

impl Write for LineCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.fetch_add(bytes.iter().filter(|byte| **byte == b'\n').count(), Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn small_fleet(rounds: u32) -> HouseholdFleet {
    let args = DemoConfig { nodes: 5, rounds, window: Some(6), policy: Policy::Paper, ..Default::default() };
    let (fleet, _) = DemoPlan::new(&args).unwrap().fleet(FederationId::new("town").unwrap()).unwrap();
    fleet
}

/// All that a run decided: the models, who was drawn, what was refused.
#[derive(Debug, PartialEq)]
struct Decided {
    weights: Vec<Digest>,
    asked: Vec<Vec<String>>,
    arrived: Vec<usize>,
    refused: u32,
}

async fn run(fleet: &HouseholdFleet, broker: &Mosquitto) -> Decided {
    let mut decided = Decided { weights: vec![], asked: vec![], arrived: vec![], refused: 0 };
    let mut on_round = |closed: &RoundEvidence, _: f64| {
        let round = &closed.round;
        decided.weights.push(round.weights_after);
        decided.asked.push(round.asked().map(|row| row.node.to_string()).collect());
        decided.arrived.push(round.arrived());
        let refusals = round.nodes.iter().map(|row| &row.refusals).chain([&round.unknown_refusals]);
        decided.refused += refusals.flat_map(|refusals| refusals.values()).sum::<u32>();
        Ok(())
    };
    let options = MqttRunOptions { broker: Some(broker.url()), processes: false };
    mqtt::run(fleet, &options, &Interrupt::default(), &mut on_round).await.unwrap();
    decided
}

/// Repeats every packet on its topic as soon as it is heard.
async fn echo(broker: Broker, recorder: Arc<Recorder>) {
    let mut done = std::collections::BTreeSet::new();
    loop {
        let new: Vec<RecordedPacket> =
            recorder.packets().into_iter().filter(|packet| done.insert(packet.clone())).collect();
        if !new.is_empty() {
            send_again(&broker, "echo", new, false).await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_replayed_into_the_same_run_and_into_another_changes_nothing() {
    let _alone = ALONE.lock().await;
    let fleet = small_fleet(12);
    let broker = Mosquitto::start();
    let undisturbed = run(&fleet, &broker).await;
    assert_eq!((undisturbed.weights.len(), undisturbed.refused), (12, 0));

    // Everything is said twice.
    let broker = Mosquitto::start();
    let recorder = Arc::new(Recorder::start(&broker.broker()).await);
    let echo = tokio::spawn(echo(broker.broker(), Arc::clone(&recorder)));
    assert_eq!(run(&fleet, &broker).await, undisturbed);
    echo.abort();
    let packets = recorder.packets();
    let distinct: std::collections::BTreeSet<&RecordedPacket> = packets.iter().collect();
    assert!(packets.len() > distinct.len() * 3 / 2, "{} of {}", packets.len(), distinct.len());

    // Everything of the first run, again and again, before and during the next.
    let broker = Mosquitto::start();
    let recorded: Vec<RecordedPacket> = distinct.into_iter().cloned().collect();
    send_again(&broker.broker(), "vandal", recorded.clone(), true).await;
    let address = broker.broker();
    let replaying = tokio::spawn(async move {
        loop {
            send_again(&address, "replay", recorded.clone(), false).await;
        }
    });
    assert_eq!(run(&fleet, &broker).await, undisturbed);
    replaying.abort();
}

/// Bytes of this process in memory.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Changed packets, half of them whole messages under a digest of their own, so that only the seal can tell.
fn changed(recorded: &[RecordedPacket], count: usize, seed: u64) -> Vec<RecordedPacket> {
    let random = |n: usize| Digest::of(&[seed.to_le_bytes(), (n as u64).to_le_bytes()].concat()).0;
    (0..count)
        .map(|n| {
            let dice = random(n);
            let number = |at: usize| usize::from(u16::from_le_bytes([dice[at], dice[at + 1]]));
            let RecordedPacket { topic, mut payload } = recorded[number(0) % recorded.len()].clone();
            if n % 2 == 0 {
                payload.drain(..payload.len().min(22));
            }
            let place = number(2) % payload.len().max(1);
            match number(4) % 3 {
                0 => payload.iter_mut().skip(place).take(1).for_each(|byte| *byte ^= dice[6] | 1),
                1 => payload.truncate(place),
                _ => payload.extend_from_slice(&dice),
            }
            if n % 2 == 0 {
                payload = Transfer::new(payload, PAYLOAD_BYTES_MAX).unwrap().chunk(0).unwrap();
            }
            RecordedPacket { topic, payload }
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_changed_packets_change_neither_models_nor_memory_nor_the_log() {
    let _alone = ALONE.lock().await;
    let fleet = small_fleet(40);
    let broker = Mosquitto::start();
    let recorder = Recorder::start(&broker.broker()).await;
    let undisturbed = run(&fleet, &broker).await;
    let recorded = recorder.stop();

    let broker = Mosquitto::start();
    let _logged = tracing_subscriber::fmt().with_writer(|| LineCounter).try_init();
    let before = (LINES.load(Ordering::Relaxed), resident_bytes());
    let sent = Arc::new(AtomicUsize::new(0));
    let (address, count) = (broker.broker(), Arc::clone(&sent));
    let flooding = tokio::spawn(async move {
        for part in 0..100 {
            let packets = changed(&recorded, 1_000, part);
            send_again(&address, "flood", packets, false).await;
            count.fetch_add(1_000, Ordering::Relaxed);
        }
    });
    let mut runs = 0;
    while !flooding.is_finished() {
        assert_eq!(run(&fleet, &broker).await, undisturbed);
        runs += 1;
    }
    flooding.await.unwrap();
    assert_eq!(sent.load(Ordering::Relaxed), 100_000);
    let lines = LINES.load(Ordering::Relaxed) - before.0;
    let grown = resident_bytes().saturating_sub(before.1);
    println!("{runs} runs, {lines} lines, {} MB more", grown >> 20);
    // Five nodes and a coordinator that start, stop and name what they ignore once a minute.
    assert!(lines < runs * 80, "{lines} lines in {runs} runs");
    assert!(grown < 64 << 20, "{} MB more", grown >> 20);
}
