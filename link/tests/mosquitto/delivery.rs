//! Delivery of messages.

use evenhand_link::testing::Mosquitto;
use evenhand_link::{LinkError, LinkOptions};
use evenhand_protocol::chunk::Assembler;
use evenhand_protocol::envelope;
use evenhand_protocol::limits::MessageLimits;
use rumqttc::QoS;

use super::{
    TASK, TIMEOUT, UPDATE, linked, long_message, message, next_packet, number, numbered, options,
    plain_client, until_subscribed,
};

#[tokio::test]
async fn short_and_long_messages_arrive_complete() {
    let broker = Mosquitto::start();
    let (coordinator, _events) = linked(options(&broker, "coordinator", &[])).await;
    let (node, mut tasks) = linked(options(&broker, "node", &[TASK])).await;
    for sent in [long_message(10), long_message(2_000_000), long_message(300_000)] {
        coordinator.publish(TASK, &sent, false).await.unwrap();
        assert_eq!(message(&mut tasks).await, (TASK.to_owned(), sent));
    }
    let (up, down) = (coordinator.traffic().bytes_up, node.traffic().bytes_down);
    assert_eq!(up, down);
    assert!((2_300_010..2_302_000).contains(&up), "{up}");
    coordinator.close(TIMEOUT).await.unwrap();
    assert!(matches!(coordinator.publish(TASK, &numbered(1), false).await, Err(LinkError::Closed)));
}

#[tokio::test]
async fn no_packet_exceeds_the_payload_limit() {
    let broker = Mosquitto::start();
    let (client, mut plain) = plain_client(&broker);
    client.subscribe("#", QoS::AtLeastOnce).await.unwrap();
    until_subscribed(&mut plain).await;
    let small = LinkOptions { payload_bytes_max: 1000, ..options(&broker, "coordinator", &[]) };
    let (coordinator, _events) = linked(small).await;
    let sent = long_message(10_000);
    coordinator.publish(TASK, &sent, false).await.unwrap();
    let mut assembler = Assembler::new(MessageLimits::default(), 1);
    loop {
        let packet = next_packet(&mut plain).await;
        assert!(packet.payload.len() <= 1000);
        if let Some(bytes) = assembler.accept(&packet.topic, &packet.payload, 0).unwrap() {
            assert_eq!(envelope::decode(&bytes, &MessageLimits::default()), Ok(sent));
            break;
        }
    }
}

#[tokio::test]
async fn a_slow_reader_stops_the_broker_and_can_still_send() {
    const MESSAGES: u32 = 200;
    const BYTES: usize = 10_000;
    let broker = Mosquitto::start();
    let slow = LinkOptions { inbound_bytes_max: 10 * BYTES, ..options(&broker, "slow", &[TASK]) };
    let (slow, mut tasks) = linked(slow).await;
    let (quick, mut updates) = linked(options(&broker, "quick", &[UPDATE])).await;
    for _ in 0..MESSAGES {
        quick.publish(TASK, &long_message(BYTES), false).await.unwrap();
    }
    // Far more than a window of packets is sent although no event is read.
    for round in 0..MESSAGES {
        slow.publish(UPDATE, &numbered(round), false).await.unwrap();
    }
    for round in 0..MESSAGES {
        assert_eq!(number(&message(&mut updates).await.1), round);
    }
    let waiting = slow.traffic().bytes_down;
    assert!(waiting < u64::from(MESSAGES) * BYTES as u64 / 2, "{waiting} bytes were received unread");
    for _ in 0..MESSAGES {
        assert_eq!(message(&mut tasks).await.1, long_message(BYTES));
    }
}

#[tokio::test]
async fn two_hundred_links_share_one_thread() {
    const NODES: u32 = 200;
    let broker = Mosquitto::start();
    let (coordinator, mut updates) =
        linked(options(&broker, "coordinator", &["evenhand/v1/f/node/+/update"])).await;
    let nodes = (0..NODES).map(|node| {
        let task = format!("evenhand/v1/f/node/{node}/task");
        let link = linked(options(&broker, &format!("node-{node}"), &[&task]));
        tokio::spawn(async move {
            let (publisher, mut tasks) = link.await;
            publisher
                .publish(&format!("evenhand/v1/f/node/{node}/update"), &numbered(node), false)
                .await
                .unwrap();
            assert_eq!(message(&mut tasks).await.1, numbered(node));
            publisher.close(TIMEOUT).await.unwrap();
        })
    });
    let nodes: Vec<_> = nodes.collect();
    for _ in 0..NODES {
        let node = number(&message(&mut updates).await.1);
        coordinator
            .publish(&format!("evenhand/v1/f/node/{node}/task"), &numbered(node), false)
            .await
            .unwrap();
    }
    for node in nodes {
        node.await.unwrap();
    }
}
