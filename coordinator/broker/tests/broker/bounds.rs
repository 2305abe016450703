//! What one client can make the broker keep.

use evenhand_broker::{Access, BrokerOptions, EmbeddedBroker};
use rumqttc::{Connect, LastWill, Packet, QoS, SubscribeReasonCode};

use super::raw::Raw;
use super::{lasting, login, named, open_broker, per_node, text};

#[tokio::test]
async fn what_does_not_fit_a_queue_is_dropped_and_counted_and_the_rest_arrives() {
    let options = BrokerOptions { session_bytes_max: 10_000, ..BrokerOptions::local(Access::Open) };
    let broker = EmbeddedBroker::start(options).await.unwrap();
    let (mut away, _) = Raw::introduce(&broker, lasting("away")).await;
    away.subscribe(&["t"]).await;
    away.send(Packet::Disconnect).await;
    away.closed().await;
    let mut sender = Raw::connect(&broker, named("sender")).await;
    for number in 0..20u8 {
        sender.publish("t", vec![number; 1000], false).await;
    }
    assert_eq!(broker.figures().dropped, 12);
    assert!(broker.figures().waiting_bytes <= 10_000);
    let (mut away, _) = Raw::introduce(&broker, lasting("away")).await;
    for number in 0..8 {
        assert_eq!(away.delivery().await.payload[0], number);
    }
}

#[tokio::test]
async fn those_who_take_nothing_in_do_not_use_up_the_room_of_others() {
    let options = BrokerOptions {
        session_bytes_max: 10_000,
        waiting_bytes_max: 20_000,
        ..BrokerOptions::local(Access::Open)
    };
    let broker = EmbeddedBroker::start(options).await.unwrap();
    let mut sender = Raw::connect(&broker, named("sender")).await;
    let mut deaf = Vec::new();
    for number in 0..3 {
        let mut client = Raw::connect(&broker, named(&format!("deaf{number}"))).await;
        client.subscribe(&[&format!("t/{number}")]).await;
        deaf.push(client);
    }
    let mut honest = Raw::connect(&broker, named("honest")).await;
    honest.subscribe(&["t/honest"]).await;
    for number in 0..3 {
        for _ in 0..20 {
            sender.publish(&format!("t/{number}"), vec![0; 1000], false).await;
        }
    }
    assert!(broker.figures().waiting_bytes >= 20_000);
    for number in 0..5 {
        sender.publish("t/honest", vec![number; 1000], false).await;
        assert_eq!(honest.delivery().await.payload[0], number);
    }
    assert!(broker.figures().waiting_bytes <= 2 * 20_000);
}

#[tokio::test]
async fn what_is_retained_is_bounded_one_by_one_and_together() {
    let options = BrokerOptions {
        retained_letter_bytes_max: 1500,
        retained_bytes_max: 10_000,
        ..BrokerOptions::local(Access::Open)
    };
    let broker = EmbeddedBroker::start(options).await.unwrap();
    let mut sender = Raw::connect(&broker, named("sender")).await;
    for number in 0..60 {
        sender.publish(&format!("t/{number:02}"), vec![number; 1000], true).await;
        assert!(broker.figures().retained_bytes <= 10_000);
    }
    assert_eq!(broker.figures().retained, 8, "1,000 bytes, the topic twice, and what it takes to keep them");
    // Room that was given back can be used, by what replaces or follows.
    sender.publish("t/00", "", true).await;
    sender.publish("t/01", "short", true).await;
    sender.publish("t/99", vec![99; 1000], true).await;
    assert_eq!(broker.figures().retained, 8);
    // What is too large is delivered, and what was kept before it would be untrue by now.
    let mut watch = Raw::connect(&broker, named("watch")).await;
    watch.subscribe(&["t/99", "t/01"]).await;
    assert_eq!(watch.delivery().await.payload[0], 99);
    assert_eq!(text(&watch.delivery().await), ("t/01", "short"));
    sender.publish("t/01", vec![1; 2000], true).await;
    assert_eq!(watch.delivery().await.payload.len(), 2000);
    assert_eq!(broker.figures().retained, 7);
    for number in 0..100 {
        sender.publish(&format!("t/{number:02}"), "", true).await;
    }
    assert_eq!((broker.figures().retained, broker.figures().retained_bytes), (0, 0));
}

#[tokio::test]
async fn a_node_cannot_fill_the_broker() {
    let broker = EmbeddedBroker::start(BrokerOptions::local(per_node())).await.unwrap();
    let mut evil = Raw::connect(&broker, login(lasting("x"), "evil", "")).await;
    for number in 0..60 {
        evil.publish(&format!("evenhand/v1/f{number}/node/evil/status"), vec![0; 1 << 20], true).await;
        evil.publish("evenhand/v1/home/node/evil/update", vec![0; 1 << 20], true).await;
    }
    assert_eq!(broker.figures().retained_bytes, 0);
    // However many connections it makes, it has one session.
    for number in 0..20 {
        Raw::connect(&broker, login(lasting(&format!("x{number}")), "evil", "")).await;
    }
    assert_eq!(broker.figures().sessions, 1);
}

#[tokio::test]
async fn a_client_has_only_so_many_filters() {
    let broker = open_broker().await;
    let mut greedy = Raw::connect(&broker, named("greedy")).await;
    let filters: Vec<String> = (0..65).map(|number| format!("t/{number}")).collect();
    let filters: Vec<&str> = filters.iter().map(String::as_str).collect();
    greedy.subscribe(&filters[..64]).await;
    assert_eq!(greedy.try_subscribe(&filters[64..]).await, [SubscribeReasonCode::Failure]);
    greedy.subscribe(&filters[..1]).await;
    let mut sender = Raw::connect(&broker, named("sender")).await;
    sender.publish("t/64", "unheard", false).await;
    sender.publish("t/63", "heard", false).await;
    assert_eq!(text(&greedy.delivery().await).1, "heard");
}

#[tokio::test]
async fn who_was_not_let_in_yet_cannot_say_much() {
    let broker = open_broker().await;
    // Each of the five texts of a CONNECT can have 65,535 bytes.
    let wordy = |bytes: usize| {
        let long = "x".repeat(bytes);
        let message = long.clone().into();
        let will = LastWill { topic: long.clone(), message, qos: QoS::AtLeastOnce, retain: false };
        login(Connect { last_will: Some(will), ..named(&long) }, &long, &long)
    };
    Raw::connect(&broker, wordy(50_000)).await;
    let mut endless = Raw::dial(&broker).await;
    endless.try_send(Packet::Connect(wordy(60_000))).await;
    assert_eq!(endless.try_next().await, None);
}
