//! Permissions on a broker as the coordinator configures it.

use std::time::{Duration, Instant};

use evenhand_broker::{Access, BrokerOptions, COORDINATOR, EmbeddedBroker, Secret};
use evenhand_protocol::identity::{FederationId, NodeId};
use rumqttc::{ConnectReturnCode, Packet, QoS, SubscribeReasonCode};

use super::raw_client::RawClient;
use super::{coordinator, login, named, per_node, persistent, text, with_will};

async fn broker() -> EmbeddedBroker {
    EmbeddedBroker::start(BrokerOptions::local(per_node())).await.unwrap()
}

fn topic(rest: &str) -> String {
    format!("evenhand/v1/home/{rest}")
}

/// Checks that nothing was delivered before the answer to a ping.
async fn assert_nothing_delivered(client: &mut RawClient) {
    client.send(Packet::PingReq).await;
    assert_eq!(client.next().await, Packet::PingResp);
}

#[tokio::test]
async fn a_node_receives_only_messages_of_its_own_topics() {
    let broker = broker().await;
    let guess = login(named("x"), COORDINATOR, "guess");
    assert_eq!(RawClient::refused(&broker, guess).await, ConnectReturnCode::BadUserNamePassword);
    let mut coordinator = RawClient::connect(&broker, coordinator()).await;
    coordinator.subscribe(&["evenhand/v1/home/node/+/update"]).await;
    let mut curious = RawClient::connect(&broker, named("m1")).await;
    let filters = [&topic("node/m1/task"), &topic("node/m2/task"), "#", "evenhand/v1/town/manifest"];
    let granted = curious.try_subscribe(&filters).await;
    let (yes, no) = (SubscribeReasonCode::Success(QoS::AtLeastOnce), SubscribeReasonCode::Failure);
    assert_eq!(granted, [yes, no, no, no]);
    coordinator.publish(&topic("node/m2/task"), "secret", false).await;
    coordinator.publish(&topic("node/m1/task"), "yours", false).await;
    assert_eq!(text(&curious.delivery().await).1, "yours");
    // Nor can it publish for others, or leave a will for them.
    curious.publish(&topic("node/m2/update"), "forged", false).await;
    curious.publish(&topic("node/m1/update"), "true", false).await;
    assert_eq!(text(&coordinator.delivery().await).1, "true");
    let forged = with_will(named("m3"), &topic("node/m2/status"));
    assert_eq!(RawClient::refused(&broker, forged).await, ConnectReturnCode::NotAuthorized);
}

#[tokio::test]
async fn a_session_belongs_to_a_user_name_and_not_to_a_client_id() {
    let broker = broker().await;
    let mut coordinator = RawClient::connect(&broker, coordinator()).await;
    let victim = || login(persistent("evenhand-home-victim"), "victim", "");
    let evil = || login(persistent("evenhand-home-victim"), "evil", "");
    let mut node = RawClient::connect(&broker, victim()).await;
    node.subscribe(&[&topic("node/victim/task")]).await;
    // A connected victim is not disconnected.
    let (mut thief, present) = RawClient::connect_session(&broker, evil()).await;
    assert!(!present);
    coordinator.publish(&topic("node/victim/task"), "one", false).await;
    assert_eq!(text(&node.delivery().await).1, "one");
    assert_nothing_delivered(&mut thief).await;
    // The queue of an offline victim is not delivered to others.
    node.send(Packet::Disconnect).await;
    node.closed().await;
    coordinator.publish(&topic("node/victim/task"), "two", false).await;
    let (mut thief, _) = RawClient::connect_session(&broker, evil()).await;
    assert_nothing_delivered(&mut thief).await;
    // Nor can another client remove its session.
    let mut thief = RawClient::connect(&broker, login(named("evenhand-home-victim"), "evil", "")).await;
    assert_nothing_delivered(&mut thief).await;
    let (mut node, present) = RawClient::connect_session(&broker, victim()).await;
    assert!(present);
    assert_eq!(text(&node.delivery().await).1, "two");
    // Nor is the coordinator disconnected by its client id.
    RawClient::connect(&broker, login(named("evenhand-coordinator-home"), "evil", "")).await;
    coordinator.publish(&topic("node/victim/task"), "three", false).await;
    assert_eq!(text(&node.delivery().await).1, "three");
}

#[tokio::test]
async fn with_a_secret_nodes_need_their_passwords() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    std::fs::write(&file, "a secret of more than 32 characters, made for this test").unwrap();
    let secret = Secret::read(&file).unwrap();
    let federation = FederationId::new("home").unwrap();
    let password = |name: &str| secret.password(&federation, &NodeId::new(name).unwrap());
    let access = Access::PerNode {
        federation: federation.clone(),
        password: "secret".into(),
        secret: Some(secret.clone()),
    };
    let options = BrokerOptions { refusal_delay: Duration::from_millis(50), ..BrokerOptions::local(access) };
    let broker = EmbeddedBroker::start(options).await.unwrap();
    let mut coordinator = RawClient::connect(&broker, coordinator()).await;
    let mut victim = RawClient::connect(&broker, login(persistent("x"), "victim", &password("victim"))).await;
    victim.subscribe(&[&topic("node/victim/task")]).await;
    let begin = Instant::now();
    for impostor in [
        named("victim"),
        login(named("x"), "victim", ""),
        login(named("x"), "victim", "guess"),
        login(named("x"), "victim", &password("evil")),
        login(persistent("x"), "victim", "secret"),
        login(named("x"), COORDINATOR, &password(COORDINATOR)),
    ] {
        assert_eq!(RawClient::refused(&broker, impostor).await, ConnectReturnCode::BadUserNamePassword);
    }
    assert!(begin.elapsed() >= 6 * Duration::from_millis(50), "a guess takes its time");
    assert_eq!(broker.stats().refused_logins, 6);
    coordinator.publish(&topic("node/victim/task"), "reward", false).await;
    assert_eq!(text(&victim.delivery().await).1, "reward");
}
