//! Federations on mosquitto with exactly the files that are shipped in `deploy/mosquitto`.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use evenhand_broker::COORDINATOR;
use evenhand_coordinator::config::{BrokerChoice, CoordinatorConfig};
use evenhand_coordinator::shell::ConnectionOptions;
use evenhand_fleet::sim::fleet::HouseholdFleet;
use evenhand_link::testing::Mosquitto;
use evenhand_link::{
    Broker, Events, Link, LinkEvent, LinkOptions, Publisher, Tls, TlsFiles, rumqttc_options,
};
use evenhand_protocol::identity::{Digest, FederationId, NodeId};
use evenhand_protocol::message::{Answer, Birth, Life, Message, Phase, Status};
use evenhand_protocol::topic::{self, Channel};
use evenhand_tests::houses::{self, CONNECT_TIMEOUT, Houses};
use rumqttc::{AsyncClient, Event, Packet, QoS};
use tempfile::TempDir;

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/mosquitto").join(name)
}

/// A mosquitto that includes a shipped configuration, as Debian's does, with a main file that keeps sessions; only the
/// address and the folders are those of the test.
fn start(configuration: &str, folder: TempDir, encrypted: bool) -> Mosquitto {
    let text = std::fs::read_to_string(shipped(configuration)).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("listener ")).collect();
    assert_eq!(lines.len() + 1, text.lines().count(), "one listener");
    let text = lines.join("\n").replace("/etc/mosquitto/evenhand", "FOLDER");
    Mosquitto::start_included(folder, &format!("{text}\n"), encrypted)
}

/// Access rules by the shipped script: of a federation's coordinator, and of its nodes.
fn permit<'a>(folder: &Path, federation: &FederationId, nodes: impl IntoIterator<Item = &'a str>) {
    let user = |arguments: &[&str]| {
        run(Command::new(shipped("user")).args(arguments).env("ACL", folder.join("acl")));
    };
    user(&["coordinator", federation.as_str()]);
    nodes.into_iter().for_each(|node| user(&["node", federation.as_str(), node]));
}

/// Every round is complete: every node that was asked answered, and nothing was refused.
async fn all_rounds_are_whole(connection: ConnectionOptions, fleet: &HouseholdFleet, nodes: Houses) {
    let mut running = houses::coordinate(connection, fleet).await;
    let mut rounds = 0;
    while let Some(closed) = running.rounds.recv().await {
        rounds += 1;
        let record = &closed.round;
        assert_eq!(record.arrived(), record.asked().count(), "round {}", record.round);
        let refused = record.nodes.iter().any(|node| !node.refusals.is_empty());
        assert!(!refused && record.unknown_refusals.is_empty(), "round {}: {record:?}", record.round);
    }
    assert_eq!(rounds, fleet.rules.federation.rounds);
    assert_eq!(running.outcome.await.unwrap().federation.phase(), Phase::Finished);
    nodes.stop().await;
}

async fn connected(options: LinkOptions) -> (Publisher, Events) {
    let (publisher, mut events) = Link::connect(options).unwrap();
    events.first_connection(CONNECT_TIMEOUT).await.unwrap();
    (publisher, events)
}

/// Topics on which something was received until the link was closed.
async fn received(mut events: Events) -> Vec<String> {
    let mut topics = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            LinkEvent::Message { topic, .. } | LinkEvent::Malformed { topic, .. } => topics.push(topic),
            _ => {}
        }
    }
    topics
}

/// What an intruder says under another's name: a death, a birth that asks for everything again, a wrong answer.
async fn forge(publisher: &Publisher, fleet: &HouseholdFleet, victim: usize) {
    let name = &fleet.rules.federation.name;
    let victim = &fleet.nodes[victim].id;
    let birth = Birth { graph: None, weights: None, token: None, software: "intruder".into() };
    let forged = [
        (Channel::Status, Message::Status(Status { session: u64::MAX, life: Life::Dead })),
        (Channel::Status, Message::Status(Status { session: u64::MAX, life: Life::Born(birth) })),
        (Channel::Update, Message::Answer(Answer::NeedWeights { round: 1 })),
        (Channel::Update, Message::Answer(Answer::NeedGraph(Digest::of(b"")))),
        (Channel::Task, Message::Answer(Answer::NeedWeights { round: 1 })),
    ];
    for (channel, message) in forged {
        let topic = topic::node(name, victim, channel);
        publisher.publish(&topic, &message, false).await.unwrap();
        publisher.publish(&topic, &message, true).await.unwrap();
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The user name of somebody who has valid papers, and takes no part.
const INTRUDER: &str = "evil";

/// A run with an intruder who goes by the coordinator's client id: it receives the beacon, and changes nothing.
async fn run_with_an_intruder(
    fleet: &HouseholdFleet,
    connection: ConnectionOptions,
    configs: Vec<evenhand_node::config::NodeConfig>,
    intruder_options: LinkOptions,
) {
    let name = &fleet.rules.federation.name;
    nobody_is_thrown_out(name, &connection, &intruder_options).await;
    let options = LinkOptions { subscriptions: vec!["#".into()], ..intruder_options };
    let (publisher, events) = connected(options).await;
    let listening = tokio::spawn(received(events));
    forge(&publisher, fleet, 0).await;
    let nodes = Houses::start(configs);
    all_rounds_are_whole(connection, fleet, nodes).await;
    publisher.close(CONNECT_TIMEOUT).await.unwrap();
    // It was there: it received the beacon. And nothing else.
    let topics = listening.await.unwrap();
    let overheard: Vec<&String> = topics.iter().filter(|topic| **topic != topic::manifest(name)).collect();
    assert!(overheard.is_empty() && !topics.is_empty(), "{overheard:?}");
}

/// With the coordinator's client id, and then one of its own, somebody else connects: the coordinator receives both, over
/// the connection it had.
async fn nobody_is_thrown_out(
    federation: &FederationId,
    connection: &ConnectionOptions,
    options: &LinkOptions,
) {
    let status = topic::node(federation, &NodeId::new(INTRUDER).unwrap(), Channel::Status);
    let mut own = LinkOptions::new(connection.broker.clone(), options.client_id.clone());
    own.tls = connection.tls.clone();
    own.persistent = false;
    own.subscriptions = vec![topic::every_node(federation, Channel::Status)];
    let (coordinator, mut events) = Link::connect(own).unwrap();
    events.first_connection(CONNECT_TIMEOUT).await.unwrap();
    assert!(matches!(events.next().await, Some(LinkEvent::Connected { .. })));
    for (session, client_id) in [(1, options.client_id.clone()), (2, "another".into())] {
        let (publisher, _events) = connected(LinkOptions { client_id, ..options.clone() }).await;
        let message = Message::Status(Status { session, life: Life::Dead });
        publisher.publish(&status, &message, false).await.unwrap();
        match events.next().await.unwrap() {
            LinkEvent::Message { message: received, .. } => assert_eq!(received, message),
            other => panic!("{other:?}"),
        }
        publisher.close(CONNECT_TIMEOUT).await.unwrap();
    }
    coordinator.close(CONNECT_TIMEOUT).await.unwrap();
}

/// As a coordinator connects whose configuration names the address and the file with its password.
fn configured(broker: &Mosquitto) -> ConnectionOptions {
    let password = broker.folder().join(COORDINATOR);
    let text = format!("[broker]\nurl = {:?}\npassword_file = {password:?}\n", broker.url());
    match CoordinatorConfig::parse(&text).unwrap().broker().unwrap() {
        BrokerChoice::External { broker, .. } => ConnectionOptions::new(broker),
        BrokerChoice::Embedded { .. } => panic!("another broker is meant"),
    }
}

/// Somebody leaves a packet under its own name that is larger than any message of these federations.
async fn leave_a_long_packet(login: &Broker, topic: &str) {
    let (client, mut events) = AsyncClient::new(rumqttc_options(login, None, INTRUDER).unwrap(), 10);
    client.publish(topic, QoS::AtLeastOnce, true, vec![7; 1_000_000]).await.unwrap();
    while !matches!(events.poll().await.unwrap(), Event::Incoming(Packet::PubAck(_))) {}
}

/// The coordinator's user is allowed to have it forgotten.
async fn the_coordinator_clears(login: &Broker, topic: &str) {
    let options = LinkOptions {
        subscriptions: vec![topic.to_owned()],
        persistent: false,
        ..LinkOptions::new(login.clone(), "the coordinator")
    };
    let (publisher, mut events) = connected(options.clone()).await;
    assert!(matches!(events.next().await, Some(LinkEvent::Connected { .. })));
    let kept = events.next().await;
    assert!(matches!(kept, Some(LinkEvent::Malformed { retained: true, .. })), "{kept:?}");
    publisher.clear_retained_once(topic);
    let dead = Message::Status(Status { session: 1, life: Life::Dead });
    publisher.publish(topic, &dead, false).await.unwrap();
    assert!(matches!(events.next().await, Some(LinkEvent::Message { .. })));
    publisher.close(CONNECT_TIMEOUT).await.unwrap();
    // What it receives first with a new connection is what it says there itself.
    let (publisher, mut events) = connected(options).await;
    publisher.publish(topic, &dead, false).await.unwrap();
    assert!(matches!(events.next().await, Some(LinkEvent::Connected { .. })));
    let first = events.next().await;
    assert!(matches!(&first, Some(LinkEvent::Message { message, .. }) if *message == dead), "{first:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn mosquitto_with_passwords_keeps_nodes_to_their_own_topics() {
    let fleet = houses::fleet("plain", 4, 14);
    let folder = tempfile::tempdir().unwrap();
    let passwords = folder.path().join("passwords");
    std::fs::write(&passwords, "").unwrap();
    for user in fleet.nodes.iter().map(|house| house.id.as_str()).chain([COORDINATOR, INTRUDER]) {
        run(Command::new("mosquitto_passwd")
            .arg("-b")
            .arg(&passwords)
            .args([user, &format!("{user}'s password")]));
        std::fs::write(folder.path().join(user), format!("{user}'s password")).unwrap();
    }
    let members = fleet.nodes.iter().map(|house| house.id.as_str());
    permit(folder.path(), &fleet.rules.federation.name, members.chain([INTRUDER]));
    let broker = start("evenhand-plain.conf", folder, false);
    let login = |user: &str| broker.broker().with_credentials(user, format!("{user}'s password"));
    let mut configs = houses::configs(&fleet, &broker.url());
    for config in &mut configs {
        config.broker.password_file = Some(broker.folder().join(config.node.id.as_str()));
    }
    let intruder = LinkOptions::new(login(INTRUDER), "evenhand-coordinator-plain");
    run_with_an_intruder(&fleet, configured(&broker), configs, intruder).await;
    let status = topic::node(&fleet.rules.federation.name, &NodeId::new(INTRUDER).unwrap(), Channel::Status);
    leave_a_long_packet(&login(INTRUDER), &status).await;
    the_coordinator_clears(&login(COORDINATOR), &status).await;

    for stranger in [broker.broker(), broker.broker().with_credentials(COORDINATOR, "guess")] {
        let (_publisher, mut events) = Link::connect(LinkOptions::new(stranger, "stranger")).unwrap();
        assert!(events.first_connection(Duration::from_secs(2)).await.is_err());
    }
}

/// The user of one federation, with papers that the broker knows, tries the topics of another.
#[tokio::test(flavor = "multi_thread")]
async fn users_of_one_federation_are_strangers_to_another_on_the_same_mosquitto() {
    let [town, city] = ["town", "city"].map(|name| FederationId::new(name).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let passwords = folder.path().join("passwords");
    std::fs::write(&passwords, "").unwrap();
    let users = [COORDINATOR, "city.coordinator", "spy", "meter"];
    for user in users {
        run(Command::new("mosquitto_passwd").arg("-b").arg(&passwords).args([user, user]));
    }
    permit(folder.path(), &town, ["spy"]);
    for arguments in [&["coordinator", "city", "city.coordinator"][..], &["node", "city", "meter"]] {
        run(Command::new(shipped("user")).args(arguments).env("ACL", folder.path().join("acl")));
    }
    let twice = Command::new(shipped("user"))
        .args(["node", "city", "spy"])
        .env("ACL", folder.path().join("acl"))
        .output();
    assert_eq!(twice.unwrap().status.code(), Some(64), "a user belongs to one federation");
    let broker = start("evenhand-plain.conf", folder, false);
    let options = |user: &str, subscriptions: Vec<String>| LinkOptions {
        subscriptions,
        ..LinkOptions::new(broker.broker().with_credentials(user, user), user)
    };
    let spy = NodeId::new("spy").unwrap();
    let of_spy = |federation| topic::node(federation, &spy, Channel::Task);
    let listening = vec!["#".into(), of_spy(&city), topic::manifest(&city), topic::manifest(&town)];
    let (spying, mut overheard) = connected(options("spy", listening)).await;
    let statuses = vec![topic::every_node(&city, Channel::Status)];
    let (city_coordinator, mut births) = connected(options("city.coordinator", statuses)).await;
    for events in [&mut overheard, &mut births] {
        assert!(matches!(events.next().await, Some(LinkEvent::Connected { .. })));
    }
    // It is not heard: the coordinator receives what the federation's own node says afterwards.
    let status = |session| Message::Status(Status { session, life: Life::Dead });
    spying.publish(&topic::node(&city, &spy, Channel::Status), &status(1), false).await.unwrap();
    let meter = NodeId::new("meter").unwrap();
    spying.publish(&topic::node(&city, &meter, Channel::Status), &status(2), false).await.unwrap();
    let (metering, _events) = connected(options("meter", Vec::new())).await;
    metering.publish(&topic::node(&city, &meter, Channel::Status), &status(3), false).await.unwrap();
    match births.next().await {
        Some(LinkEvent::Message { message, .. }) => assert_eq!(message, status(3)),
        other => panic!("{other:?}"),
    }
    // And it hears nothing, not even what is said to a node of its name: only its own federation.
    let order = Message::Answer(Answer::NeedWeights { round: 1 });
    for topic in [of_spy(&city), topic::manifest(&city)] {
        city_coordinator.publish(&topic, &order, false).await.unwrap();
    }
    let (town_coordinator, _events) = connected(options(COORDINATOR, Vec::new())).await;
    town_coordinator.publish(&topic::manifest(&town), &order, false).await.unwrap();
    match overheard.next().await {
        Some(LinkEvent::Message { topic, .. } | LinkEvent::Malformed { topic, .. }) => {
            assert_eq!(topic, topic::manifest(&town));
        }
        other => panic!("{other:?}"),
    }
}

/// Certificates by the shipped script, in a folder of its own.
fn certificates(folder: &Path, clients: &[&str]) {
    let certificate =
        |arguments: &[&str]| run(Command::new(shipped("certificate")).args(arguments).env("FOLDER", folder));
    certificate(&["authority"]);
    certificate(&["broker", "127.0.0.1"]);
    std::fs::rename(folder.join("127.0.0.1.pem"), folder.join("broker.pem")).unwrap();
    std::fs::rename(folder.join("127.0.0.1.key"), folder.join("broker.key")).unwrap();
    for client in clients {
        certificate(&["client", client]);
    }
}

fn tls(authority: &Path, own: Option<(&Path, &str)>) -> Tls {
    let file = |kind: &str| own.map(|(folder, name)| folder.join(format!("{name}.{kind}")));
    let files = TlsFiles { ca: Some(authority.join("ca.pem")), certificate: file("pem"), key: file("key") };
    Tls::load(&files).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn mosquitto_with_client_certificates_keeps_nodes_to_their_own_topics() {
    let fleet = houses::fleet("sealed", 4, 14);
    let folder = tempfile::tempdir().unwrap();
    let names = fleet.nodes.iter().map(|house| house.id.as_str()).chain([COORDINATOR, INTRUDER]);
    let names: Vec<&str> = names.collect();
    certificates(folder.path(), &names);
    let members = names.iter().copied().filter(|name| *name != COORDINATOR);
    permit(folder.path(), &fleet.rules.federation.name, members);
    let mut broker = start("evenhand.conf", folder, true);
    let papers = broker.folder().to_owned();
    let mut configs = houses::configs(&fleet, &broker.url());
    for config in &mut configs {
        let id = config.node.id.to_string();
        config.broker.ca_file = Some(papers.join("ca.pem"));
        config.broker.certificate_file = Some(papers.join(format!("{id}.pem")));
        config.broker.key_file = Some(papers.join(format!("{id}.key")));
    }
    let show = |name: &str| Some(tls(&papers, Some((&papers, name))));
    let connection = ConnectionOptions { tls: show(COORDINATOR), ..ConnectionOptions::new(broker.broker()) };
    let mut intruder = LinkOptions::new(broker.broker(), "evenhand-coordinator-sealed");
    intruder.tls = show(INTRUDER);
    run_with_an_intruder(&fleet, connection, configs, intruder).await;

    // Without papers, or with papers of another authority, nobody gets in; nor is a false broker believed.
    let other = tempfile::tempdir().unwrap();
    certificates(other.path(), &[COORDINATOR]);
    for strange in [
        tls(&papers, None),
        tls(&papers, Some((other.path(), COORDINATOR))),
        tls(other.path(), Some((&papers, COORDINATOR))),
    ] {
        let mut options = LinkOptions::new(broker.broker(), "stranger");
        options.tls = Some(strange);
        let (_publisher, mut events) = Link::connect(options).unwrap();
        assert!(events.first_connection(Duration::from_secs(2)).await.is_err());
    }
    let revoked = &fleet.nodes[0].id;
    run(Command::new(shipped("certificate")).args(["revoke", revoked.as_str()]).env("FOLDER", &papers));
    broker.stop();
    broker.restart();
    for (name, admitted) in [(revoked.as_str(), false), (fleet.nodes[1].id.as_str(), true)] {
        let mut options = LinkOptions::new(broker.broker(), name);
        options.tls = show(name);
        let (_publisher, mut events) = Link::connect(options).unwrap();
        assert_eq!(events.first_connection(Duration::from_secs(2)).await.is_ok(), admitted, "{name}");
    }
    let plain = Broker::parse(&broker.url().replace("mqtts:", "mqtt:")).unwrap();
    let (_publisher, mut events) = Link::connect(LinkOptions::new(plain, "stranger")).unwrap();
    assert!(events.first_connection(Duration::from_secs(2)).await.is_err());
}
