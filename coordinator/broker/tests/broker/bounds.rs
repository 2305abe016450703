//! Limits on the memory one client can take.

use evenhand_broker::{Access, BrokerOptions, EmbeddedBroker};
use rumqttc::{Connect, LastWill, Packet, QoS, SubscribeReasonCode};

use super::raw_client::RawClient;
use super::{login, named, open_broker, per_node, persistent, text};

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
    for number in 0..60 {
        evil.publish(&format!("evenhand/v1/f{number}/node/evil/status"), vec![0; 1 << 20], true).await;
        evil.publish("evenhand/v1/home/node/evil/update", vec![0; 1 << 20], true).await;
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
