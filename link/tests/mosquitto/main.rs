//! The link over a real broker.
#![allow(clippy::unwrap_used)]

mod delivery;
mod refused;
mod resending;
mod sealing;
mod sessions;

use std::time::Duration;

use evenhand_link::testing::Mosquitto;
use evenhand_link::{Events, Link, LinkError, LinkEvent, LinkOptions, Publisher};
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{Answer, Life, Message, Order, Status};
use rumqttc::{AsyncClient, Event, EventLoop, MqttOptions, Packet};

const TASK: &str = "evenhand/v1/f/node/n/task";
const UPDATE: &str = "evenhand/v1/f/node/n/update";
const STATUS: &str = "evenhand/v1/f/node/n/status";
const TIMEOUT: Duration = Duration::from_secs(60);

fn options(broker: &Mosquitto, client_id: &str, subscriptions: &[&str]) -> LinkOptions {
    LinkOptions {
        subscriptions: subscriptions.iter().map(|filter| (*filter).to_owned()).collect(),
        ..LinkOptions::new(broker.broker(), client_id)
    }
}

async fn linked(options: LinkOptions) -> (Publisher, Events) {
    let (publisher, mut events) = Link::connect(options).unwrap();
    events.first_connection(TIMEOUT).await.unwrap();
    (publisher, events)
}

/// The next message; connection events are skipped.
async fn message(events: &mut Events) -> (String, Message) {
    loop {
        match events.next().await.unwrap() {
            LinkEvent::Message { topic, message, .. } => return (topic, message),
            LinkEvent::Malformed { topic, error, .. } => panic!("malformed on {topic}: {error}"),
            _ => {}
        }
    }
}

/// The error of the first connection, once an attempt has failed.
async fn connection_error(events: &mut Events) -> LinkError {
    loop {
        let error = events.first_connection(Duration::from_millis(200)).await.unwrap_err();
        if !error.to_string().contains("no answer within") {
            return error;
        }
    }
}

async fn connected(events: &mut Events) -> bool {
    loop {
        if let LinkEvent::Connected { session_present } = events.next().await.unwrap() {
            return session_present;
        }
    }
}

fn numbered(round: u32) -> Message {
    Message::Answer(Answer::NeedWeights { round })
}

fn number(message: &Message) -> u32 {
    match message {
        Message::Answer(Answer::NeedWeights { round }) => *round,
        other => panic!("not a numbered message: {other:?}"),
    }
}

fn long_message(bytes: usize) -> Message {
    let onnx = (0..bytes).map(|position| (position * position / 7) as u8).collect();
    Message::Order(Order::Graph { graph: Digest::of(b"graph"), onnx })
}

fn offline(session: u64) -> Message {
    Message::Status(Status { session, life: Life::Dead })
}

/// A client of rumqttc itself, to inspect packets and to send malformed ones.
fn plain_client(broker: &Mosquitto) -> (AsyncClient, EventLoop) {
    let mut options = MqttOptions::new("plain", broker.broker().host(), broker.broker().port());
    options.set_max_packet_size(1 << 20, 1 << 20);
    AsyncClient::new(options, 100)
}

async fn next_packet(plain: &mut EventLoop) -> rumqttc::Publish {
    loop {
        if let Event::Incoming(Packet::Publish(packet)) = plain.poll().await.unwrap() {
            return packet;
        }
    }
}

async fn until_subscribed(plain: &mut EventLoop) {
    while !matches!(plain.poll().await.unwrap(), Event::Incoming(Packet::SubAck(_))) {}
}
