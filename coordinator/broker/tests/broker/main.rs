//! The embedded broker, packet by packet.
#![allow(clippy::unwrap_used)]

mod access;
mod bounds;
mod raw_client;
mod tls;

use std::net::SocketAddr;

use bytes::Bytes;
use evenhand_broker::{Access, BrokerOptions, COORDINATOR, EmbeddedBroker};
use evenhand_protocol::identity::FederationId;
use rumqttc::{Connect, LastWill, Packet, PubAck, Publish, QoS, Unsubscribe};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use self::raw_client::RawClient;

async fn open_broker() -> EmbeddedBroker {
    EmbeddedBroker::start(BrokerOptions::local(Access::Open)).await.unwrap()
}

/// The policy of a coordinator, with a known password.
fn per_node() -> Access {
    let federation = FederationId::new("home").unwrap();
    Access::PerNode { federation, password: "secret".into(), secret: None }
}

fn login(connect: Connect, user: &str, password: &str) -> Connect {
    let mut connect = connect;
    connect.set_login(user, password);
    connect
}

fn coordinator() -> Connect {
    login(named("evenhand-coordinator-home"), COORDINATOR, "secret")
}

fn named(client: &str) -> Connect {
    let mut connect = Connect::new(client);
    connect.keep_alive = 0;
    connect
}

fn persistent(client: &str) -> Connect {
    Connect { clean_session: false, ..named(client) }
}

fn with_will(connect: Connect, topic: &str) -> Connect {
    let will =
        LastWill { topic: topic.into(), message: Bytes::from("gone"), qos: QoS::AtLeastOnce, retain: true };
    Connect { last_will: Some(will), ..connect }
}

fn text(publish: &Publish) -> (&str, &str) {
    (&publish.topic, std::str::from_utf8(&publish.payload).unwrap())
}

#[tokio::test]
async fn a_message_reaches_every_subscriber_once() {
    let broker = open_broker().await;
    let mut sender = RawClient::connect(&broker, named("sender")).await;
    let mut both = RawClient::connect(&broker, named("both")).await;
    let mut none = RawClient::connect(&broker, named("none")).await;
    both.subscribe(&["a/+", "a/b", "#"]).await;
    none.subscribe(&["b/#"]).await;
    sender.publish("a/b", "one", false).await;
    sender.publish("b/c", "two", false).await;
    let first = both.delivery().await;
    assert_eq!((text(&first), first.retain, first.qos), (("a/b", "one"), false, QoS::AtLeastOnce));
    assert_eq!(text(&both.delivery().await), ("b/c", "two"));
    assert_eq!(text(&none.delivery().await), ("b/c", "two"));
    none.send(Packet::Unsubscribe(Unsubscribe { pkid: 9, topics: vec!["b/#".into()] })).await;
    assert!(matches!(none.next().await, Packet::UnsubAck(ack) if ack.pkid == 9));
    sender.publish("b/c", "three", false).await;
    none.send(Packet::PingReq).await;
    assert_eq!(none.next().await, Packet::PingResp, "nothing was delivered before");
}

#[tokio::test]
async fn retained_messages_are_delivered_to_later_subscribers_until_removed() {
    let broker = open_broker().await;
    let mut sender = RawClient::connect(&broker, named("sender")).await;
    for (topic, payload) in
        [("s/1", "old"), ("s/1", "new"), ("s/2", "other"), ("s/3", "removed"), ("s/3", "")]
    {
        sender.publish(topic, payload, true).await;
    }
    let mut late = RawClient::connect(&broker, named("late")).await;
    late.subscribe(&["s/+"]).await;
    let (first, second) = (late.delivery().await, late.delivery().await);
    assert_eq!((text(&first), first.retain), (("s/1", "new"), true));
    assert_eq!((text(&second), second.retain), (("s/2", "other"), true));
    late.subscribe(&["s/2"]).await;
    assert_eq!(text(&late.delivery().await), ("s/2", "other"), "each subscription delivers it again");
    assert_eq!(broker.stats().retained, 2);
}

#[tokio::test]
async fn a_will_is_published_unless_the_client_disconnects_gracefully() {
    let broker = open_broker().await;
    let mut watcher = RawClient::connect(&broker, named("watcher")).await;
    watcher.subscribe(&["status/#"]).await;
    drop(RawClient::connect(&broker, with_will(named("lost"), "status/lost")).await);
    assert_eq!(text(&watcher.delivery().await), ("status/lost", "gone"));
    let mut leaving = RawClient::connect(&broker, with_will(named("leaving"), "status/leaving")).await;
    leaving.send(Packet::Disconnect).await;
    leaving.closed().await;
    // Also for a client that violates the protocol.
    let mut violating = RawClient::connect(&broker, with_will(named("violating"), "status/violating")).await;
    violating.send(Packet::PingResp).await;
    assert_eq!(text(&watcher.delivery().await), ("status/violating", "gone"));
    // Also for one that sends nothing, here for one and a half seconds.
    let silent = Connect { keep_alive: 1, ..with_will(named("silent"), "status/silent") };
    let silent = RawClient::connect(&broker, silent).await;
    assert_eq!(text(&watcher.delivery().await), ("status/silent", "gone"));
    drop(silent);
    let mut late = RawClient::connect(&broker, named("late")).await;
    late.subscribe(&["status/lost"]).await;
    assert!(late.delivery().await.retain, "a will can be retained");
}

#[tokio::test]
async fn a_second_connection_takes_over_after_the_will_of_the_first() {
    let broker = open_broker().await;
    let mut watcher = RawClient::connect(&broker, named("watcher")).await;
    watcher.subscribe(&["status/a"]).await;
    let mut first = RawClient::connect(&broker, with_will(persistent("a"), "status/a")).await;
    let mut second = RawClient::connect(&broker, with_will(persistent("a"), "status/a")).await;
    second.publish("status/a", "born", true).await;
    first.closed().await;
    assert_eq!(text(&watcher.delivery().await), ("status/a", "gone"));
    assert_eq!(text(&watcher.delivery().await), ("status/a", "born"));
    watcher.send(Packet::PingReq).await;
    assert_eq!(watcher.next().await, Packet::PingResp, "the end of the first publishes nothing more");
}

#[tokio::test]
async fn a_persistent_session_receives_missed_and_unacknowledged_messages() {
    let broker = open_broker().await;
    let mut sender = RawClient::connect(&broker, named("sender")).await;
    let (mut node, present) = RawClient::connect_session(&broker, persistent("node")).await;
    assert!(!present);
    node.subscribe(&["task"]).await;
    for payload in ["1", "2", "3"] {
        sender.publish("task", payload, false).await;
    }
    let first = node.delivery().await;
    let second = node.next_publish().await;
    node.send(Packet::Disconnect).await;
    node.closed().await;
    sender.publish("task", "4", false).await;
    let (mut node, present) = RawClient::connect_session(&broker, persistent("node")).await;
    assert!(present, "no need to subscribe again");
    let mut again = Vec::new();
    for _ in 0..3 {
        again.push(node.next_publish().await);
    }
    assert_eq!(text(&first), ("task", "1"));
    let seen: Vec<_> = again.iter().map(|publish| text(publish).1).collect();
    assert_eq!(seen, ["2", "3", "4"], "in order");
    assert!(again[0].dup && again[0].pkid == second.pkid, "the same packet again");
    for publish in again {
        node.send(Packet::PubAck(PubAck::new(publish.pkid))).await;
    }
    node.send(Packet::PingReq).await;
    assert_eq!(node.next().await, Packet::PingResp);
    assert_eq!(broker.stats().waiting_bytes, 0, "acknowledged messages are freed");
    // A clean session is empty.
    let (mut node, present) = RawClient::connect_session(&broker, named("node")).await;
    assert!(!present);
    sender.publish("task", "5", false).await;
    node.send(Packet::PingReq).await;
    assert_eq!(node.next().await, Packet::PingResp);
}

#[tokio::test]
async fn models_of_megabytes_pass_and_packets_beyond_the_limit_do_not() {
    let options = BrokerOptions { packet_bytes_max: 5 << 20, ..BrokerOptions::local(Access::Open) };
    let broker = EmbeddedBroker::start(options).await.unwrap();
    let mut receiver = RawClient::connect(&broker, named("receiver")).await;
    receiver.subscribe(&["model"]).await;
    let mut sender = RawClient::connect(&broker, named("sender")).await;
    for megabytes in [1, 4] {
        let model: Vec<u8> = (0..megabytes << 20).map(|i: u32| i as u8).collect();
        sender.publish("model", model.clone(), false).await;
        assert_eq!(receiver.delivery().await.payload, model);
    }
    let huge = Publish { pkid: 1, ..Publish::new("model", QoS::AtLeastOnce, vec![0; 6 << 20]) };
    sender.try_send(Packet::Publish(huge)).await;
    sender.closed().await;
}

#[tokio::test]
async fn nodes_wait_for_a_slow_coordinator_and_nothing_is_lost() {
    const UPDATES: usize = 200;
    let options = BrokerOptions { session_bytes_max: 1 << 20, ..BrokerOptions::local(per_node()) };
    let broker = EmbeddedBroker::start(options).await.unwrap();
    let mut coordinator = RawClient::connect(&broker, coordinator()).await;
    coordinator.subscribe(&["evenhand/v1/home/node/+/update"]).await;
    let mut node = RawClient::connect(&broker, named("m1")).await;
    let flood = tokio::spawn(async move {
        for number in 0..UPDATES {
            node.publish("evenhand/v1/home/node/m1/update", vec![number as u8; 50_000], false).await;
        }
        node
    });
    for number in 0..UPDATES {
        let update = coordinator.delivery().await;
        assert_eq!(update.payload[0], number as u8);
        assert!(broker.stats().waiting_bytes <= 1 << 20);
    }
    flood.await.unwrap();
    assert_eq!(broker.stats().dropped, 0);
}

#[tokio::test]
async fn nothing_is_lost_when_many_nodes_publish_at_once() {
    const NODES: usize = 50;
    let options = BrokerOptions { session_bytes_max: 1 << 20, ..BrokerOptions::local(per_node()) };
    let broker = EmbeddedBroker::start(options).await.unwrap();
    let mut coordinator = RawClient::connect(&broker, coordinator()).await;
    coordinator.subscribe(&["evenhand/v1/home/node/+/update"]).await;
    let mut nodes = Vec::new();
    for number in 0..NODES {
        let mut node = RawClient::connect(&broker, named(&format!("m{number}"))).await;
        let topic = format!("evenhand/v1/home/node/m{number}/update");
        nodes.push(tokio::spawn(async move { node.publish(&topic, vec![0; 120_000], false).await }));
    }
    for _ in 0..NODES {
        coordinator.delivery().await;
    }
    for node in nodes {
        node.await.unwrap();
    }
    assert_eq!(broker.stats().dropped, 0);
}

#[tokio::test]
async fn hundreds_of_clients_each_receive_their_own_messages() {
    const CLIENTS: usize = 300;
    let broker = open_broker().await;
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let mut client = RawClient::connect(&broker, persistent(&format!("c{number}"))).await;
        client.subscribe(&[&format!("task/{number}"), "all"]).await;
        clients.push(client);
    }
    let mut sender = RawClient::connect(&broker, named("sender")).await;
    sender.publish("all", "hello", false).await;
    for number in 0..CLIENTS {
        sender.publish(&format!("task/{number}"), number.to_string(), false).await;
    }
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(text(&client.delivery().await), ("all", "hello"));
        assert_eq!(text(&client.delivery().await).1, number.to_string());
    }
    assert_eq!(broker.stats().connections, CLIENTS + 1);
}

#[tokio::test]
async fn malformed_bytes_end_only_their_own_connection() {
    use rand::{RngExt, SeedableRng};
    let broker = open_broker().await;
    let mut sender = RawClient::connect(&broker, named("sender")).await;
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    for _ in 0..200 {
        let mut stream = TcpStream::connect(broker.address()).await.unwrap();
        let mut bytes: Vec<u8> = (0..rng.random_range(1..80)).map(|_| rng.random()).collect();
        if rng.random_bool(0.5) {
            let mut connect = bytes::BytesMut::new();
            named("malformed").write(&mut connect).unwrap();
            bytes.splice(0..0, connect);
        }
        // The broker may close the connection during the write.
        let _closed = stream.write_all(&bytes).await;
    }
    let mut receiver = RawClient::connect(&broker, named("receiver")).await;
    receiver.subscribe(&["t"]).await;
    sender.publish("t", "still here", false).await;
    assert_eq!(text(&receiver.delivery().await).1, "still here");
}

#[tokio::test]
async fn a_stopped_broker_closes_connections_and_frees_its_port() {
    let broker = open_broker().await;
    let address: SocketAddr = broker.address();
    assert_eq!(broker.url(), format!("mqtt://{address}"));
    let mut client = RawClient::connect(&broker, named("client")).await;
    broker.stop().await;
    client.closed().await;
    let again = EmbeddedBroker::start(BrokerOptions::new(address, Access::Open)).await.unwrap();
    RawClient::connect(&again, named("client")).await;
    let taken = EmbeddedBroker::start(BrokerOptions::new(address, Access::Open)).await;
    assert_eq!(taken.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
}
