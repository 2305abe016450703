//! Sealed messages over a real broker.

use evenhand_link::testing::{Mosquitto, coordinator_sealing, node_sealing};
use evenhand_link::{LinkEvent, LinkOptions, Publisher};
use evenhand_protocol::identity::{FederationId, NodeId};
use evenhand_protocol::message::{Answer, Life, Message, Status};
use evenhand_protocol::topic::{self, Channel};

use super::{Events, TIMEOUT, linked};

fn names() -> (FederationId, NodeId) {
    (FederationId::new("f").unwrap(), NodeId::new("n").unwrap())
}

fn of_node(channel: Channel) -> String {
    let (federation, node) = names();
    topic::node(&federation, &node, channel)
}

async fn coordinator(broker: &Mosquitto) -> (Publisher, Events) {
    let (federation, _) = names();
    linked(LinkOptions {
        subscriptions: [Channel::Status, Channel::Update].map(|it| topic::every_node(&federation, it)).into(),
        persistent: false,
        sealing: Some(coordinator_sealing(&federation)),
        ..LinkOptions::new(broker.broker(), "coordinator")
    })
    .await
}

async fn node(broker: &Mosquitto, session: u64) -> (Publisher, Events) {
    let (federation, node) = names();
    linked(LinkOptions {
        subscriptions: vec![topic::manifest(&federation), of_node(Channel::Task), of_node(Channel::Account)],
        sealing: Some(node_sealing(&federation, &node, session)),
        ..LinkOptions::new(broker.broker(), "node")
    })
    .await
}

async fn secured(events: &mut Events) {
    while !matches!(events.next().await.unwrap(), LinkEvent::Secured { .. }) {}
}

/// The next message; what is refused on the way is left over from sessions that have ended.
async fn message(events: &mut Events) -> (String, Message) {
    loop {
        if let LinkEvent::Message { topic, message, .. } = events.next().await.unwrap() {
            return (topic, message);
        }
    }
}

fn answer(round: u32) -> Message {
    Message::Answer(Answer::NeedWeights { round })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_begins_by_itself_and_again_after_either_side_has_started_again() {
    let broker = Mosquitto::start();
    // Either may come first.
    let (saying, mut node_events) = node(&broker, 1).await;
    let (first, mut events) = coordinator(&broker).await;
    secured(&mut node_events).await;
    saying.publish(&of_node(Channel::Update), &answer(1), false).await.unwrap();
    assert_eq!(message(&mut events).await, (of_node(Channel::Update), answer(1)));
    first.publish(&of_node(Channel::Task), &answer(2), false).await.unwrap();
    assert_eq!(message(&mut node_events).await, (of_node(Channel::Task), answer(2)));

    drop(events);
    let (_second, mut events) = coordinator(&broker).await;
    secured(&mut node_events).await;
    saying.publish(&of_node(Channel::Update), &answer(3), false).await.unwrap();
    assert_eq!(message(&mut events).await.1, answer(3));

    // It dies, which the broker says, and comes back.
    drop(node_events);
    let dead = Message::Status(Status { session: 1, life: Life::Dead });
    assert_eq!(message(&mut events).await, (of_node(Channel::Status), dead));
    let (saying, mut node_events) = node(&broker, 2).await;
    secured(&mut node_events).await;
    saying.publish(&of_node(Channel::Update), &answer(4), false).await.unwrap();
    assert_eq!(message(&mut events).await.1, answer(4));
    saying.close(TIMEOUT).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_sealed_is_refused_and_what_is_retained_is_sealed_to_those_who_come() {
    let broker = Mosquitto::start();
    let (federation, _) = names();
    let (telling, mut events) = coordinator(&broker).await;
    telling.publish(&topic::manifest(&federation), &answer(7), true).await.unwrap();
    let (forging, _events) = linked(LinkOptions::new(broker.broker(), "forger")).await;
    forging.publish(&of_node(Channel::Update), &answer(1), true).await.unwrap();
    loop {
        match events.next().await.unwrap() {
            LinkEvent::Refused { topic, .. } => break assert_eq!(topic, of_node(Channel::Update)),
            LinkEvent::Message { message, .. } => panic!("{message:?}"),
            _ => {}
        }
    }
    forging.publish(&of_node(Channel::Task), &answer(1), true).await.unwrap();
    let (saying, mut node_events) = node(&broker, 1).await;
    secured(&mut node_events).await;
    saying.publish(&of_node(Channel::Update), &answer(2), false).await.unwrap();
    assert_eq!(message(&mut events).await.1, answer(2));
    assert_eq!(message(&mut node_events).await, (of_node(Channel::Task), answer(7)));
}
