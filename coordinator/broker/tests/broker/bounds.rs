//! Limits on the memory one client can take.

use evenhand_broker::{Access, BrokerOptions, EmbeddedBroker};
use evenhand_protocol::identity::NodeId;
use rumqttc::{Connect, LastWill, Packet, Publish, QoS, SubscribeReasonCode};

use super::raw_client::RawClient;
use super::{coordinator, login, named, open_broker, per_node, persistent, text};

#[tokio::test]
async fn messages_beyond_a_queue_are_dropped_and_counted_and_the_rest_arrives() {
    let options = BrokerOptions { session_bytes_max: 10_000, ..BrokerOptions::local(Access::Open) };
    let broker = EmbeddedBroker::start(options).await.unwrap();
    let (mut offline, _) = RawClient::connect_session(&broker, persistent("offline")).await;
    offline.subscribe(&["t"]).await;
    offline.send(Packet::Disconnect).await;
    offline.closed().await;
    let mut sender = RawClient::connect(&broker, named("sender")).await;
    for number in 0..20u8 {
        sender.publish("t", vec![number; 1000], false).await;
    }
    assert_eq!(broker.stats().dropped, 12);
    assert!(broker.stats().waiting_bytes <= 10_000);
    let (mut offline, _) = RawClient::connect_session(&broker, persistent("offline")).await;
    for number in 0..8 {
        assert_eq!(offline.delivery().await.payload[0], number);
    }
}

#[tokio::test]
async fn clients_that_do_not_read_do_not_use_up_the_room_of_others() {
    let options = BrokerOptions {
        session_bytes_max: 10_000,
        waiting_bytes_max: 20_000,
        ..BrokerOptions::local(Access::Open)
    };
    let broker = EmbeddedBroker::start(options).await.unwrap();
    let mut sender = RawClient::connect(&broker, named("sender")).await;
    let mut unread = Vec::new();
    for number in 0..3 {
        let mut client = RawClient::connect(&broker, named(&format!("unread{number}"))).await;
        client.subscribe(&[&format!("t/{number}")]).await;
        unread.push(client);
    }
    let mut honest = RawClient::connect(&broker, named("honest")).await;
    honest.subscribe(&["t/honest"]).await;
    for number in 0..3 {
        for _ in 0..20 {
            sender.publish(&format!("t/{number}"), vec![0; 1000], false).await;
        }
    }
    assert!(broker.stats().waiting_bytes >= 20_000);
    for number in 0..5 {
        sender.publish("t/honest", vec![number; 1000], false).await;
        assert_eq!(honest.delivery().await.payload[0], number);
    }
    assert!(broker.stats().waiting_bytes <= 2 * 20_000);
}

#[tokio::test]
async fn retained_messages_are_bounded_each_and_together() {
    let options = BrokerOptions {
        retained_message_bytes_max: 1500,
        retained_bytes_max: 10_000,
        ..BrokerOptions::local(Access::Open)
    };
    let broker = EmbeddedBroker::start(options).await.unwrap();
    let mut sender = RawClient::connect(&broker, named("sender")).await;
    for number in 0..60 {
        sender.publish(&format!("t/{number:02}"), vec![number; 1000], true).await;
        assert!(broker.stats().retained_bytes <= 10_000);
    }
    assert_eq!(broker.stats().retained, 8, "1,000 bytes, the topic twice, and the overhead");
    // Freed room can be used by replacements and new messages.
    sender.publish("t/00", "", true).await;
    sender.publish("t/01", "short", true).await;
    sender.publish("t/99", vec![99; 1000], true).await;
    assert_eq!(broker.stats().retained, 8);
    // A message that is too large is delivered, and its predecessor is outdated.
    let mut watcher = RawClient::connect(&broker, named("watcher")).await;
    watcher.subscribe(&["t/99", "t/01"]).await;
    assert_eq!(watcher.delivery().await.payload[0], 99);
    assert_eq!(text(&watcher.delivery().await), ("t/01", "short"));
    sender.publish("t/01", vec![1; 2000], true).await;
    assert_eq!(watcher.delivery().await.payload.len(), 2000);
    assert_eq!(broker.stats().retained, 7);
    for number in 0..100 {
        sender.publish(&format!("t/{number:02}"), "", true).await;
    }
    assert_eq!((broker.stats().retained, broker.stats().retained_bytes), (0, 0));
}

#[tokio::test]
async fn a_node_cannot_fill_the_broker() {
    let broker = EmbeddedBroker::start(BrokerOptions::local(per_node())).await.unwrap();
    let mut evil = RawClient::connect(&broker, login(persistent("x"), "evil", "")).await;
    for number in 0..600 {
        evil.publish(&format!("evenhand/v1/f{number}/node/evil/status"), vec![0; 100_000], true).await;
        evil.publish("evenhand/v1/home/node/evil/update", vec![0; 100_000], true).await;
    }
    assert_eq!(broker.stats().retained_bytes, 0);
    // However many connections it opens, it has one session.
    for number in 0..20 {
        RawClient::connect(&broker, login(persistent(&format!("x{number}")), "evil", "")).await;
    }
    assert_eq!(broker.stats().sessions, 1);
}

#[tokio::test]
async fn the_filters_of_a_client_are_limited() {
    let broker = open_broker().await;
    let mut greedy = RawClient::connect(&broker, named("greedy")).await;
    let filters: Vec<String> = (0..65).map(|number| format!("t/{number}")).collect();
    let filters: Vec<&str> = filters.iter().map(String::as_str).collect();
    greedy.subscribe(&filters[..64]).await;
    assert_eq!(greedy.try_subscribe(&filters[64..]).await, [SubscribeReasonCode::Failure]);
    greedy.subscribe(&filters[..1]).await;
    let mut sender = RawClient::connect(&broker, named("sender")).await;
    sender.publish("t/64", "not subscribed", false).await;
    sender.publish("t/63", "subscribed", false).await;
    assert_eq!(text(&greedy.delivery().await).1, "subscribed");
}

#[tokio::test]
async fn a_connect_packet_is_limited_in_size() {
    let broker = open_broker().await;
    // Each of the five texts of a CONNECT can have 65,535 bytes.
    let long_connect = |bytes: usize| {
        let long = "x".repeat(bytes);
        let message = long.clone().into();
        let will = LastWill { topic: long.clone(), message, qos: QoS::AtLeastOnce, retain: false };
        login(Connect { last_will: Some(will), ..named(&long) }, &long, &long)
    };
    RawClient::connect(&broker, long_connect(50_000)).await;
    let mut endless = RawClient::open(&broker).await;
    endless.try_send(Packet::Connect(long_connect(60_000))).await;
    assert_eq!(endless.try_next().await, None);
}

/// The first bytes of a PUBLISH of this length.
fn beginning_of_a_packet(bytes: usize) -> Vec<u8> {
    let mut packet = bytes::BytesMut::new();
    let publish = Publish::new("evenhand/v1/home/node/evil/update", QoS::AtMostOnce, vec![0; bytes]);
    publish.write(&mut packet).unwrap();
    packet.to_vec()
}

#[tokio::test]
async fn a_node_sends_no_longer_packets_than_a_node_needs_and_the_coordinator_does() {
    let broker = EmbeddedBroker::start(BrokerOptions::local(per_node())).await.unwrap();
    let mut coordinator = RawClient::connect(&broker, coordinator()).await;
    let mut node = RawClient::connect(&broker, named("m1")).await;
    let update = "evenhand/v1/home/node/m1/update";
    coordinator.subscribe(&[update]).await;
    node.publish(update, vec![0; evenhand_protocol::chunk::PAYLOAD_BYTES_MAX], false).await;
    coordinator.delivery().await;
    node.send_part(&beginning_of_a_packet(200_000)[..100]).await;
    node.closed().await;
    coordinator.publish("evenhand/v1/home/node/m1/task", vec![0; 4 << 20], false).await;
}

#[tokio::test]
async fn unfinished_packets_are_bounded_together_and_whole_ones_arrive() {
    let options = BrokerOptions { unfinished_bytes_max: 1 << 20, ..BrokerOptions::local(per_node()) };
    let broker = EmbeddedBroker::start(options).await.unwrap();
    let mut coordinator = RawClient::connect(&broker, coordinator()).await;
    coordinator.subscribe(&["evenhand/v1/home/node/+/update"]).await;
    let part = &beginning_of_a_packet(120_000)[..110_000];
    let mut holding = Vec::new();
    for number in 0..40 {
        let mut evil = RawClient::connect(&broker, named(&format!("evil{number}"))).await;
        evil.send_part(part).await;
        holding.push(evil);
    }
    while broker.stats().connections > 11 {
        tokio::task::yield_now().await;
    }
    // What is below the size that is counted always passes; what was begun and is finished, too.
    let mut honest = RawClient::connect(&broker, named("honest")).await;
    honest.publish("evenhand/v1/home/node/honest/update", vec![1; 3000], false).await;
    assert_eq!(coordinator.delivery().await.payload[0], 1);
    drop(holding);
    while broker.stats().connections > 2 {
        tokio::task::yield_now().await;
    }
    honest.publish("evenhand/v1/home/node/honest/update", vec![2; 120_000], false).await;
    assert_eq!(coordinator.delivery().await.payload[0], 2);
}

#[tokio::test]
async fn a_packet_that_is_begun_must_be_finished() {
    let options = BrokerOptions {
        packet_timeout: std::time::Duration::from_millis(50),
        ..BrokerOptions::local(per_node())
    };
    let broker = EmbeddedBroker::start(options).await.unwrap();
    // Without a keep-alive, and shorter than a second's worth of bytes.
    let mut evil = RawClient::connect(&broker, named("evil")).await;
    evil.send_part(&beginning_of_a_packet(500)[..100]).await;
    evil.closed().await;
    // A client that is silent between packets stays.
    let mut silent = RawClient::connect(&broker, named("silent")).await;
    let mut next = RawClient::connect(&broker, named("next")).await;
    next.send_part(&beginning_of_a_packet(500)[..100]).await;
    next.closed().await;
    silent.send(Packet::PingReq).await;
    assert_eq!(silent.next().await, Packet::PingResp);
}

#[tokio::test]
async fn sessions_left_behind_do_not_shut_out_others() {
    let options = BrokerOptions { sessions_max: 20, ..BrokerOptions::local(per_node()) };
    let broker = EmbeddedBroker::start(options).await.unwrap();
    let enrolled = NodeId::new("enrolled").unwrap();
    broker.reserve([&enrolled]);
    for name in std::iter::once("enrolled".to_owned()).chain((0..100).map(|number| format!("ghost{number}")))
    {
        let mut ghost = RawClient::connect(&broker, persistent(&name)).await;
        ghost.send(Packet::Disconnect).await;
        ghost.closed().await;
    }
    assert_eq!(broker.stats().sessions, 20);
    RawClient::connect(&broker, named("newcomer")).await;
    RawClient::connect(&broker, coordinator()).await;
    assert!(
        RawClient::connect_session(&broker, persistent("enrolled")).await.1,
        "its session is still there"
    );
}
