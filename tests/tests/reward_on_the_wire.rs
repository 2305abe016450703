//! The latest model is the reward: seen from the whole broker, it travels to drawn nodes and to nobody else.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use evenhand_federation::RoundEvidence;
use evenhand_fleet::sim::Interrupt;
use evenhand_fleet::sim::demo::{DemoConfig, DemoPlan};
use evenhand_fleet::sim::mqtt::{self, MqttRunOptions};
use evenhand_link::testing::Mosquitto;
use evenhand_link::{Events, Link, LinkEvent, LinkOptions};
use evenhand_protocol::identity::{Digest, FederationId, NodeId};
use evenhand_protocol::message::{Message, Order, Phase};
use evenhand_protocol::topic::{self, Channel};

/// What one round was, from inside the coordinator.
struct Round {
    drawn: BTreeSet<NodeId>,
    weights: Digest,
    draws: bool,
}

/// Everything that passed the broker until the federation said that it is finished.
async fn overheard(mut events: Events) -> Vec<(String, Message)> {
    let mut received = Vec::new();
    while let Some(event) = events.next().await {
        let LinkEvent::Message { topic, message, .. } = event else { continue };
        let over = matches!(&message, Message::Manifest(manifest) if manifest.phase == Phase::Finished);
        received.push((topic, message));
        if over {
            break;
        }
    }
    received
}

#[tokio::test(flavor = "multi_thread")]
async fn only_drawn_nodes_are_sent_the_latest_model() {
    let broker = Mosquitto::start();
    let mut options = LinkOptions::new(broker.broker(), "eavesdropper");
    options.subscriptions = vec!["evenhand/#".into()];
    let (_publisher, mut events) = Link::connect(options).unwrap();
    events.first_connection(Duration::from_secs(30)).await.unwrap();
    let listener = tokio::spawn(overheard(events));

    let federation = FederationId::new("overheard").unwrap();
    let args = DemoConfig { nodes: 6, rounds: 30, window: Some(6), ..Default::default() };
    let (fleet, _) = DemoPlan::new(&args).unwrap().fleet(federation.clone()).unwrap();
    let mut rounds: BTreeMap<u32, Round> = BTreeMap::new();
    let mut on_round = |closed: &RoundEvidence, _: f64| {
        let record = &closed.round;
        let round = Round {
            drawn: record.asked().map(|row| row.node.clone()).collect(),
            weights: record.weights_before,
            draws: record.phase == Phase::Running,
        };
        rounds.insert(record.round, round);
        Ok(())
    };
    let options = MqttRunOptions { broker: Some(broker.url()), processes: false };
    mqtt::run(&fleet, &options, &Interrupt::default(), &mut on_round).await.unwrap();
    let received = listener.await.unwrap();

    let mut rewarded: BTreeMap<u32, BTreeSet<NodeId>> = BTreeMap::new();
    for (topic, message) in &received {
        let Message::Order(order) = message else { continue };
        let (node, channel) = topic::parse_node(&federation, topic).unwrap();
        assert_eq!(channel, Channel::Task, "orders travel on task topics only");
        match order {
            Order::Train(train) => {
                let round = &rounds[&train.round];
                assert!(round.drawn.contains(&node), "{node} was not drawn in round {}", train.round);
                assert_eq!(train.weights_digest, round.weights);
                if let Some(weights) = &train.weights {
                    assert_eq!(Digest::of_weights(weights), round.weights);
                    rewarded.entry(train.round).or_default().insert(node);
                }
            }
            Order::Graph { onnx, .. } => {
                assert_eq!(onnx[..], fleet.initial_model.onnx[..], "initial weights only")
            }
            Order::Measure(_) | Order::Resend(_) | Order::Refused { .. } => {}
        }
    }
    let exploited: Vec<(&u32, &Round)> = rounds.iter().filter(|(_, round)| round.draws).collect();
    assert!(exploited.iter().any(|(_, round)| round.drawn.len() < fleet.nodes.len()), "somebody waits");
    for (number, round) in exploited {
        assert_eq!(rewarded.get(number), Some(&round.drawn), "who was drawn in round {number} was rewarded");
    }
}
