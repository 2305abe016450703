//! Sessions over restarts and losses of broker and client.

use std::collections::BTreeSet;

use evenhand_link::testing::{Mosquitto, free_port};
use evenhand_link::{Broker, LinkEvent, LinkOptions, OutboundMessage};

use super::{STATUS, TASK, TIMEOUT, UPDATE, connected, linked, message, number, numbered, offline, options};

#[tokio::test]
async fn an_orderly_restart_of_the_broker_loses_nothing() {
    const MESSAGES: u32 = 400;
    let mut broker = Mosquitto::start_persistent();
    let (node, _events) = linked(options(&broker, "node", &[])).await;
    let (_publisher, mut updates) = linked(options(&broker, "coordinator", &[UPDATE])).await;
    let sender = tokio::spawn(async move {
        for round in 0..MESSAGES {
            node.publish(UPDATE, &numbered(round), false).await.unwrap();
        }
        node.close(TIMEOUT).await.unwrap();
    });
    let mut seen = BTreeSet::new();
    while seen.len() < MESSAGES as usize {
        seen.insert(number(&message(&mut updates).await.1));
        if seen.len() == 100 {
            broker = tokio::task::spawn_blocking(move || {
                broker.stop();
                broker.restart();
                broker
            })
            .await
            .unwrap();
        }
    }
    sender.await.unwrap();
}

#[tokio::test]
async fn messages_that_a_crashed_broker_did_not_acknowledge_are_sent_again() {
    let mut broker = Mosquitto::start();
    let (publisher, mut events) = linked(options(&broker, "node", &[UPDATE])).await;
    assert!(!connected(&mut events).await);
    // These reach a broker that no longer acknowledges, those after the crash reach none.
    broker.suspend();
    for round in 0..10 {
        publisher.publish(UPDATE, &numbered(round), false).await.unwrap();
    }
    broker.kill();
    while !matches!(events.next().await.unwrap(), LinkEvent::Disconnected { .. }) {}
    for round in 10..20 {
        publisher.publish(UPDATE, &numbered(round), false).await.unwrap();
    }
    broker.restart();
    assert!(!connected(&mut events).await, "the broker lost the session");
    for round in 0..20 {
        assert_eq!(number(&message(&mut events).await.1), round, "all of them, in order");
    }
    publisher.close(TIMEOUT).await.unwrap();
}

#[tokio::test]
async fn a_persistent_session_receives_messages_sent_while_it_was_offline() {
    let broker = Mosquitto::start();
    let (_coordinator, events) = linked(options(&broker, "coordinator", &[UPDATE])).await;
    drop(events);
    let (node, _events) = linked(options(&broker, "node", &[])).await;
    node.publish(UPDATE, &numbered(7), false).await.unwrap();
    node.close(TIMEOUT).await.unwrap();
    let (_coordinator, mut events) = linked(options(&broker, "coordinator", &[UPDATE])).await;
    assert!(connected(&mut events).await);
    assert_eq!(number(&message(&mut events).await.1), 7);
}

#[tokio::test]
async fn the_will_is_published_for_a_lost_client_and_not_after_a_disconnect() {
    let broker = Mosquitto::start();
    let (_publisher, mut statuses) = linked(options(&broker, "coordinator", &[STATUS])).await;
    let with_will = |session| LinkOptions {
        will: Some(OutboundMessage { topic: STATUS.to_owned(), message: offline(session), retain: true }),
        ..options(&broker, "node", &[])
    };
    let (leaving, _events) = linked(with_will(1)).await;
    leaving.close(TIMEOUT).await.unwrap();
    let (_publisher, lost) = linked(with_will(2)).await;
    drop(lost);
    assert_eq!(message(&mut statuses).await, (STATUS.to_owned(), offline(2)));
}

#[tokio::test]
async fn another_endpoint_of_the_cluster_is_tried_when_one_is_down() {
    let (mut one, two) = (Mosquitto::start(), Mosquitto::start());
    let dead = free_port();
    let list = format!("mqtt://{},{},127.0.0.1:{dead}", one.broker(), two.broker());
    // Each client finds a reachable endpoint, no matter where it begins.
    for client in ["a", "b", "c", "d", "e"] {
        let options = LinkOptions::new(Broker::parse(&list).unwrap(), client);
        let (publisher, _events) = linked(options).await;
        publisher.close(TIMEOUT).await.unwrap();
    }
    let subscriptions = vec![TASK.to_owned()];
    let options = LinkOptions { subscriptions, ..LinkOptions::new(Broker::parse(&list).unwrap(), "node") };
    let (publisher, mut events) = linked(options).await;
    one.kill();
    // Only the second is left: its messages arrive, now or after reconnecting there.
    let (coordinator, _events) = linked(LinkOptions::new(two.broker(), "coordinator")).await;
    coordinator.publish(TASK, &numbered(7), true).await.unwrap();
    assert_eq!(number(&message(&mut events).await.1), 7);
    publisher.close(TIMEOUT).await.unwrap();
}
