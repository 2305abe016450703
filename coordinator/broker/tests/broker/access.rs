//! Who hears and says what, on the broker a coordinator configures.

use evenhand_broker::{Access, BrokerOptions, COORDINATOR, EmbeddedBroker, Secret};
use evenhand_protocol::identity::{FederationId, NodeId};
use rumqttc::{ConnectReturnCode, Packet, QoS, SubscribeReasonCode};

use super::raw::Raw;
use super::{coordinator, lasting, login, named, per_node, text, with_will};

async fn broker() -> EmbeddedBroker {
    EmbeddedBroker::start(BrokerOptions::local(per_node())).await.unwrap()
}

fn topic(rest: &str) -> String {
    format!("evenhand/v1/home/{rest}")
}

/// Nothing was delivered before the answer to this.
async fn hears_nothing(client: &mut Raw) {
    client.send(Packet::PingReq).await;
    assert_eq!(client.next().await, Packet::PingResp);
}

#[tokio::test]
async fn a_node_hears_only_what_is_its_own() {
    let broker = broker().await;
    let guess = login(named("x"), COORDINATOR, "guess");
    assert_eq!(Raw::refused(&broker, guess).await, ConnectReturnCode::BadUserNamePassword);
    let mut coordinator = Raw::connect(&broker, coordinator()).await;
    coordinator.subscribe(&["evenhand/v1/home/node/+/update"]).await;
    let mut curious = Raw::connect(&broker, named("m1")).await;
    let filters = [&topic("node/m1/task"), &topic("node/m2/task"), "#", "evenhand/v1/town/manifest"];
    let granted = curious.try_subscribe(&filters).await;
    let (yes, no) = (SubscribeReasonCode::Success(QoS::AtLeastOnce), SubscribeReasonCode::Failure);
    assert_eq!(granted, [yes, no, no, no]);
    coordinator.publish(&topic("node/m2/task"), "secret", false).await;
    coordinator.publish(&topic("node/m1/task"), "yours", false).await;
    assert_eq!(text(&curious.delivery().await).1, "yours");
    // Nor can it speak for others, in life or death.
    curious.publish(&topic("node/m2/update"), "forged", false).await;
    curious.publish(&topic("node/m1/update"), "true", false).await;
    assert_eq!(text(&coordinator.delivery().await).1, "true");
    let forged = with_will(named("m3"), &topic("node/m2/status"));
    assert_eq!(Raw::refused(&broker, forged).await, ConnectReturnCode::NotAuthorized);
}

#[tokio::test]
async fn a_session_belongs_to_the_name_that_made_it_and_not_to_its_client_id() {
    let broker = broker().await;
    let mut coordinator = Raw::connect(&broker, coordinator()).await;
    let victim = || login(lasting("evenhand-home-victim"), "victim", "");
    let evil = || login(lasting("evenhand-home-victim"), "evil", "");
    let mut node = Raw::connect(&broker, victim()).await;
    node.subscribe(&[&topic("node/victim/task")]).await;
    // While the victim is there, it is not thrown out.
    let (mut thief, known) = Raw::introduce(&broker, evil()).await;
    assert!(!known);
    coordinator.publish(&topic("node/victim/task"), "one", false).await;
    assert_eq!(text(&node.delivery().await).1, "one");
    hears_nothing(&mut thief).await;
    // While it is away, its queue is its own.
    node.send(Packet::Disconnect).await;
    node.closed().await;
    coordinator.publish(&topic("node/victim/task"), "two", false).await;
    let (mut thief, _) = Raw::introduce(&broker, evil()).await;
    hears_nothing(&mut thief).await;
    // Nor can its session be ended, by anybody but itself.
    let mut thief = Raw::connect(&broker, login(named("evenhand-home-victim"), "evil", "")).await;
    hears_nothing(&mut thief).await;
    let (mut node, known) = Raw::introduce(&broker, victim()).await;
    assert!(known);
    assert_eq!(text(&node.delivery().await).1, "two");
    // The coordinator is not thrown out by its client id either.
    Raw::connect(&broker, login(named("evenhand-coordinator-home"), "evil", "")).await;
    coordinator.publish(&topic("node/victim/task"), "three", false).await;
    assert_eq!(text(&node.delivery().await).1, "three");
}

#[tokio::test]
async fn with_a_secret_nobody_is_a_node_without_its_password() {
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
    let broker = EmbeddedBroker::start(BrokerOptions::local(access)).await.unwrap();
    let mut coordinator = Raw::connect(&broker, coordinator()).await;
    let mut victim = Raw::connect(&broker, login(lasting("x"), "victim", &password("victim"))).await;
    victim.subscribe(&[&topic("node/victim/task")]).await;
    for impostor in [
        named("victim"),
        login(named("x"), "victim", ""),
        login(named("x"), "victim", "guess"),
        login(named("x"), "victim", &password("evil")),
        login(lasting("x"), "victim", "secret"),
        login(named("x"), COORDINATOR, &password(COORDINATOR)),
    ] {
        assert_eq!(Raw::refused(&broker, impostor).await, ConnectReturnCode::BadUserNamePassword);
    }
    coordinator.publish(&topic("node/victim/task"), "reward", false).await;
    assert_eq!(text(&victim.delivery().await).1, "reward");
}
