//! Seen from the whole broker, no model, update or reference gradient of a run occurs in clear, and the latest model, which
//! is the reward, travels to drawn nodes and to nobody else.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, HashSet};

use evenhand_federation::RoundEvidence;
use evenhand_fleet::sim::Interrupt;
use evenhand_fleet::sim::demo::{DemoConfig, DemoPlan};
use evenhand_fleet::sim::mqtt::{self, MqttRunOptions};
use evenhand_link::testing::Mosquitto;
use evenhand_protocol::envelope;
use evenhand_protocol::identity::{FederationId, NodeId};
use evenhand_protocol::message::{Answer, Message, Update};
use evenhand_protocol::topic::{self, Channel};
use evenhand_tests::recorder::{RecordedPacket, Recorder};

/// Bytes that are compared at a time: four values in f32, eight in bf16.
const PIECE: usize = 16;

/// Every piece of some bytes.
fn pieces(bytes: &[u8]) -> impl Iterator<Item = [u8; PIECE]> {
    bytes.windows(PIECE).map(|window| window.try_into().unwrap())
}

/// Pieces from all over the encoding of a vector; pieces of few values say nothing.
fn telling_pieces(encoded: &[u8]) -> Vec<[u8; PIECE]> {
    let telling = |piece: &[u8]| piece.iter().collect::<HashSet<_>>().len() >= PIECE / 2;
    encoded
        .chunks_exact(PIECE)
        .filter(|piece| telling(piece))
        .map(|piece| piece.try_into().unwrap())
        .collect()
}

fn bf16(values: &[f32]) -> Vec<u8> {
    let nearest_even = |bits: u32| ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16;
    values.iter().flat_map(|value| nearest_even(value.to_bits()).to_le_bytes()).collect()
}

fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn search(all: &HashSet<[u8; PIECE]>, vectors: &[Vec<u8>]) -> (usize, usize) {
    let wanted: Vec<[u8; PIECE]> = vectors.iter().flat_map(|vector| telling_pieces(vector)).collect();
    (wanted.iter().filter(|piece| all.contains(*piece)).count(), wanted.len())
}

/// Messages by topic and length, put together again from their chunks.
fn message_lengths(packets: &[RecordedPacket]) -> Vec<(String, usize)> {
    use evenhand_protocol::chunk::Assembler;
    use evenhand_protocol::limits::MessageLimits;
    let mut assembler = Assembler::new(MessageLimits::default(), 1_000);
    let mut messages = Vec::new();
    for packet in packets {
        if let Ok(Some(message)) = assembler.accept(&packet.topic, &packet.payload, 0) {
            messages.push((packet.topic.clone(), message.len()));
        }
    }
    messages
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_readable_and_only_drawn_nodes_are_sent_the_latest_model() {
    let broker = Mosquitto::start();
    let recorder = Recorder::start(&broker.broker()).await;
    let federation = FederationId::new("overheard").unwrap();
    let args = DemoConfig { nodes: 6, rounds: 30, window: Some(6), ..Default::default() };
    let (fleet, _) = DemoPlan::new(&args).unwrap().fleet(federation.clone()).unwrap();
    let mut vectors: Vec<Vec<f32>> = vec![fleet.initial_model.weights.to_vec()];
    let mut updates: Vec<Update> = Vec::new();
    let mut drawn: BTreeMap<NodeId, usize> = BTreeMap::new();
    let mut some_waited = false;
    let mut on_round = |closed: &RoundEvidence, _: f64| {
        vectors.push(closed.weights.values().to_vec());
        for (_, update) in &closed.updates {
            vectors.push(update.vector().to_vec());
            updates.push(update.to_message(closed.round.round));
        }
        let asked: Vec<NodeId> = closed.round.asked().map(|row| row.node.clone()).collect();
        some_waited |= asked.len() < 6;
        asked.into_iter().for_each(|node| *drawn.entry(node).or_default() += 1);
        Ok(())
    };
    let options = MqttRunOptions { broker: Some(broker.url()), processes: false };
    mqtt::run(&fleet, &options, &Interrupt::default(), &mut on_round).await.unwrap();
    let packets = recorder.stop();

    assert!(updates.len() > 30 && vectors.len() > 60, "{} updates", updates.len());
    let sealed: HashSet<[u8; PIECE]> = packets.iter().flat_map(|packet| pieces(&packet.payload)).collect();
    let encodings: Vec<Vec<u8>> = vectors.iter().flat_map(|values| [f32s(values), bf16(values)]).collect();
    let (found, wanted) = search(&sealed, &encodings);
    assert!(wanted > 10_000, "{wanted}");
    assert_eq!(found, 0, "of {wanted} pieces");
    // In clear, the search would have found them.
    let clear: HashSet<[u8; PIECE]> = updates
        .iter()
        .flat_map(|update| envelope::encode(&Message::Answer(Answer::Update(update.clone()))))
        .collect::<Vec<u8>>()
        .windows(PIECE)
        .map(|window| window.try_into().unwrap())
        .collect();
    let sent: Vec<Vec<u8>> = vectors.iter().map(|values| f32s(values)).collect();
    let (found, wanted) = search(&clear, &sent);
    assert!(found * 3 > wanted, "{found} of {wanted}: updates are most of the vectors");

    // A message as long as the model: the graph is longer, everything else shorter.
    let model = 4 * fleet.initial_model.weights.len();
    let mut rewarded: BTreeMap<NodeId, usize> = BTreeMap::new();
    for (topic, length) in message_lengths(&packets) {
        let Some((node, channel)) = topic::parse_node(&federation, &topic) else { continue };
        if channel == Channel::Task && (model..model + 200).contains(&length) {
            *rewarded.entry(node).or_default() += 1;
        }
    }
    assert!(some_waited, "somebody waits");
    assert_eq!(rewarded, drawn, "who was drawn was rewarded, and nobody else");
}
