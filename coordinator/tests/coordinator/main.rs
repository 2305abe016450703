//! The whole coordinator over its own broker, with real links to scripted nodes.
#![allow(clippy::unwrap_used)]

mod node;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use evenhand_broker::{Access, BrokerOptions, COORDINATOR, EmbeddedBroker};
use evenhand_coordinator::shell::{
    Connection, Coordinator, Handle, KeepError, Keeper, Outcome, Report, ShellError, Unheeded,
};
use evenhand_federation::{
    Command, CommandRejection, Federation, FederationConfig, InitialModel, NodeResponse, RoundEvidence,
    Rules, SavedFederation,
};
use evenhand_link::testing::Mosquitto;
use evenhand_link::{Broker, Link, LinkEvent, LinkOptions, plain_options};
use evenhand_protocol::identity::{Digest, FederationId, NodeId};
use evenhand_protocol::message::{Answer, Life, Message, Order, Phase, Refusal, Status};
use evenhand_protocol::topic::{self, Channel};
use rumqttc::{AsyncClient, Event, Packet, QoS};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use self::node::{Behaviour, Node};

const DIM: usize = 40_000;

/// Rounds wait for their nodes as good as for ever: what ends them must be answers and wills.
fn settings(nodes: u32) -> FederationConfig {
    let mut settings = FederationConfig::default();
    settings.federation.nodes_min = nodes;
    settings.federation.rounds = 8;
    settings.federation.round_deadline_ms = 3_600_000;
    settings.training.learning_rate = 0.5;
    settings.exploring.watched = 1;
    settings.exploring.window = 2;
    settings.exploring.rounds_max = 3;
    settings.exploiting.k = nodes.min(2);
    settings.exploiting.temperature = 0.1;
    settings
}

fn blueprint() -> InitialModel {
    InitialModel {
        graph: Digest::of(b"graph"),
        onnx: vec![7; 300_000].into(),
        weights: (0..DIM).map(|i| (i % 17) as f32).collect::<Vec<f32>>().into(),
    }
}

fn federation(settings: FederationConfig) -> Federation {
    Federation::new(Rules::new(settings).unwrap(), blueprint())
}

async fn broker(access: Access) -> EmbeddedBroker {
    EmbeddedBroker::start(BrokerOptions::local(access)).await.unwrap()
}

fn address(broker: &EmbeddedBroker) -> Broker {
    Broker::parse(&broker.url()).unwrap()
}

/// A coordinator at work.
struct Running {
    handle: Handle,
    reports: mpsc::UnboundedReceiver<Report>,
    outcome: JoinHandle<Result<Outcome, ShellError>>,
}

impl Running {
    async fn start(broker: Broker, federation: Federation, keeper: impl Keeper + 'static) -> Self {
        let coordinator = Coordinator::connect(Connection::new(broker), federation).await.unwrap();
        let coordinator = coordinator.kept_by(keeper);
        let handle = coordinator.handle();
        let (sender, reports) = mpsc::unbounded_channel();
        Self { handle, reports, outcome: tokio::spawn(coordinator.run(sender)) }
    }

    async fn round(&mut self) -> Arc<RoundEvidence> {
        self.reports.recv().await.expect("another round").closed
    }

    async fn end(mut self) -> (Outcome, Vec<Arc<RoundEvidence>>) {
        let outcome = self.outcome.await.unwrap().unwrap();
        let mut rounds = Vec::new();
        while let Some(report) = self.reports.recv().await {
            rounds.push(report.closed);
        }
        (outcome, rounds)
    }
}

/// Keeps the last state in memory, as a disk would.
#[derive(Clone, Default)]
struct Shelf(Arc<Mutex<Option<Vec<u8>>>>);

impl Keeper for Shelf {
    fn keep(&mut self, _closed: &[Arc<RoundEvidence>], saved: SavedFederation) -> Result<(), KeepError> {
        *self.0.lock().unwrap() = Some(saved.to_bytes());
        Ok(())
    }
}

impl Shelf {
    fn restore(&self) -> Federation {
        let bytes = self.0.lock().unwrap().clone().unwrap();
        Federation::restore(SavedFederation::from_bytes(&bytes).unwrap(), blueprint().onnx).unwrap()
    }
}

fn asked(closed: &RoundEvidence) -> BTreeSet<String> {
    closed.record.asked().map(|node| node.node.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_federation_enrols_explores_exploits_and_finishes_and_models_reach_only_the_drawn() {
    let broker = broker(Access::Open).await;
    // Somebody who hears everything that is said on the broker.
    let mut options = LinkOptions::new(address(&broker), "ear");
    options.subscriptions = vec!["#".into()];
    options.persistent = false;
    let (_ear, mut heard) = Link::connect(options).unwrap();
    heard.first_connection(std::time::Duration::from_secs(60)).await.unwrap();

    let running = Running::start(address(&broker), federation(settings(5)), Shelf::default()).await;
    let nodes: Vec<Node> = (0..5)
        .map(|number| Node::start(address(&broker), &format!("n{number}"), 1, Behaviour::Obeys))
        .collect();
    let (outcome, rounds) = running.end().await;
    assert_eq!(outcome.federation.phase(), Phase::Finished);
    assert_eq!(rounds.len(), 8);
    let phases: Vec<Phase> = rounds.iter().map(|closed| closed.record.phase).collect();
    assert_eq!(phases[..3], [Phase::Exploring; 3]);
    assert_eq!(phases[3..], [Phase::Exploiting; 5]);
    for closed in &rounds {
        assert_eq!(closed.record.arrived(), asked(closed).len(), "nobody was lost");
    }

    // What each node received is what the records say it was drawn for.
    let mut received: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    for node in nodes {
        let diary = node.end().await;
        assert_eq!(diary.phases.last(), Some(&Phase::Finished));
        let account = diary.account.expect("an account");
        let last = rounds.last().unwrap().record.nodes.iter().find(|row| row.node == diary.id).unwrap();
        assert_eq!((account.standing, account.drawn), (last.standing, last.drawn));
        for (round, digest) in diary.tasks {
            let record = &rounds[round as usize - 1].record;
            assert_eq!(digest, record.weights_before);
            received.entry(round).or_default().insert(diary.id.to_string());
        }
    }
    for closed in &rounds {
        assert_eq!(received[&closed.record.round], asked(closed));
    }

    // And on the wire each model is seen on the topics of drawn nodes only, whole.
    let name = outcome.federation.rules().federation.name.clone();
    let mut seen: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    while let Some(event) = heard.next().await {
        let LinkEvent::Message { topic, message, .. } = event else { continue };
        match message {
            Message::Order(Order::Train(train)) => {
                let (node, channel) = topic::parse_node(&name, &topic).unwrap();
                assert_eq!(channel, Channel::Task);
                assert_eq!(Digest::of_weights(&train.weights.unwrap()), train.weights_digest);
                seen.entry(train.round).or_default().insert(node.to_string());
            }
            // Nothing is said after it.
            Message::Manifest(manifest) if manifest.phase == Phase::Finished => break,
            _ => {}
        }
    }
    for (round, nodes) in &seen {
        assert_eq!(nodes, &asked(&rounds[*round as usize - 1]));
    }
    assert_eq!(seen.len(), 8, "every round was seen");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_dies_in_a_round_is_missed_at_once_and_welcome_back() {
    let access = Access::per_node(FederationId::new("home").unwrap(), None);
    let password = access.password().unwrap().to_owned();
    let broker = broker(access).await;
    let address = address(&broker);
    let login = address.clone().with_credentials(COORDINATOR, password);
    let mut rules = settings(3);
    // Longer than it lasts: it explores all the time.
    rules.exploring.window = 100;
    rules.exploring.rounds_max = 100;
    let mut running = Running::start(login, federation(rules), Shelf::default()).await;
    let a = Node::start(address.clone(), "a", 1, Behaviour::Waits(3));
    let b = Node::start(address.clone(), "b", 1, Behaviour::Obeys);
    let mortal = Node::start(address.clone(), "c", 1, Behaviour::DiesIn(2));
    assert_eq!(running.round().await.record.arrived(), 3);
    let second = running.round().await;
    assert_eq!(second.record.nodes[2].fate, NodeResponse::Disconnected, "its will ended the wait");
    mortal.end().await;
    let mut back = Node::start(address.clone(), "c", 2, Behaviour::Obeys);
    back.is_greeted().await;
    a.go_on();
    assert_eq!(running.round().await.record.arrived(), 2, "it had died before round 3 was drawn");
    assert_eq!(running.round().await.record.arrived(), 3, "and is there for round 4");
    let (outcome, _) = running.end().await;
    let member = &outcome.federation.members()[2];
    assert_eq!(
        (member.id().as_str(), member.standing().rounds()),
        ("c", 8),
        "it was measured in every round"
    );
    for node in [a, b, back] {
        node.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_will_does_not_take_a_living_node_out() {
    let broker = broker(Access::Open).await;
    let mut rules = settings(2);
    rules.federation.rounds = 3;
    let mut running = Running::start(address(&broker), federation(rules.clone()), Shelf::default()).await;
    // The second session of b is born before the will of its first arrives.
    let a = Node::start(address(&broker), "a", 1, Behaviour::Waits(2));
    let b = Node::start(address(&broker), "b", 2, Behaviour::Obeys);
    assert_eq!(running.round().await.record.arrived(), 2);
    let (ghost, mut events) = Link::connect(LinkOptions::new(address(&broker), "ghost")).unwrap();
    events.first_connection(std::time::Duration::from_secs(60)).await.unwrap();
    let status = topic::node(&rules.federation.name, &NodeId::new("b").unwrap(), Channel::Status);
    ghost.publish(&status, &Message::Status(Status { session: 1, life: Life::Dead }), true).await.unwrap();
    ghost.close(std::time::Duration::from_secs(60)).await.unwrap();
    // Only now does a answer its second task: if the will had counted, b would be missing from round 3.
    a.go_on();
    assert_eq!(running.round().await.record.arrived(), 2);
    let third = running.round().await;
    assert_eq!(third.record.arrived(), 2);
    running.end().await;
    a.end().await;
    b.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_comes_back_finds_everybody_going_on() {
    let first = broker(Access::Open).await;
    let place = first.address();
    let mut rules = settings(3);
    rules.federation.rounds = 6;
    let mut running = Running::start(address(&first), federation(rules), Shelf::default()).await;
    let nodes: Vec<Node> =
        ["a", "b", "c"].map(|name| Node::start(address(&first), name, 1, Behaviour::Waits(2))).into();
    assert_eq!(running.round().await.record.arrived(), 3);
    // All hold round 2's task unanswered when the broker goes, with all it remembers.
    first.stop().await;
    let second = EmbeddedBroker::start(BrokerOptions::new(place, Access::Open)).await.unwrap();
    nodes.iter().for_each(Node::go_on);
    let (outcome, rounds) = running.end().await;
    assert_eq!(outcome.federation.phase(), Phase::Finished);
    assert_eq!(rounds.len(), 5);
    drop(nodes);
    drop(second);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_that_is_stopped_and_restored_goes_on_with_the_same_round() {
    let broker = broker(Access::Open).await;
    let shelf = Shelf::default();
    let mut running = Running::start(address(&broker), federation(settings(3)), shelf.clone()).await;
    let nodes: Vec<Node> =
        ["a", "b", "c"].map(|name| Node::start(address(&broker), name, 1, Behaviour::Waits(5))).into();
    for _ in 0..4 {
        running.round().await;
    }
    running.handle.stop();
    let (stopped, _) = running.end().await;
    assert_eq!((stopped.federation.phase(), stopped.federation.round()), (Phase::Exploiting, 5));
    let drawn: BTreeSet<String> = stopped
        .federation
        .members()
        .iter()
        .filter(|member| member.last_drawn() == Some(5))
        .map(|member| member.id().to_string())
        .collect();
    let mut running = Running::start(address(&broker), shelf.restore(), shelf.clone()).await;
    nodes.iter().for_each(Node::go_on);
    let fifth = running.round().await;
    assert_eq!((fifth.record.round, asked(&fifth)), (5, drawn));
    let (outcome, _) = running.end().await;
    assert_eq!(outcome.federation.phase(), Phase::Finished);
    drop(nodes);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_can_pause_resume_and_finish() {
    let broker = broker(Access::Open).await;
    let mut running = Running::start(address(&broker), federation(settings(2)), Shelf::default()).await;
    let nodes: Vec<Node> =
        ["a", "b"].map(|name| Node::start(address(&broker), name, 1, Behaviour::Waits(2))).into();
    running.round().await;
    assert_eq!(running.handle.command(Command::Pause).await, Ok(()));
    assert_eq!(running.handle.command(Command::Begin).await, Err(CommandRejection::Begun.into()));
    assert_eq!(running.handle.command(Command::Resume).await, Ok(()));
    nodes.iter().for_each(Node::go_on);
    assert_eq!(running.round().await.record.round, 2);
    assert_eq!(running.handle.command(Command::Finish).await, Ok(()));
    let handle = running.handle.clone();
    let (outcome, _) = running.end().await;
    assert_eq!(handle.command(Command::Pause).await, Err(Unheeded::Ending));
    assert_eq!(outcome.federation.phase(), Phase::Finished);
    for node in nodes {
        assert_eq!(node.end().await.phases.last(), Some(&Phase::Finished));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_cannot_be_kept_is_never_announced() {
    struct Full;
    impl Keeper for Full {
        fn keep(&mut self, _closed: &[Arc<RoundEvidence>], _saved: SavedFederation) -> Result<(), KeepError> {
            Err("no space left on device".into())
        }
    }
    let broker = broker(Access::Open).await;
    let running = Running::start(address(&broker), federation(settings(1)), Full).await;
    let node = Node::start(address(&broker), "a", 1, Behaviour::Obeys);
    let error = running.outcome.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("no space left on device"), "{error}");
    assert!(node.end_now().await.tasks.is_empty());
}

/// Somebody leaves a packet on a node's own topic that is larger than any message; the federation goes on, and the
/// coordinator sweeps it away.
async fn outlives_a_retained_packet_that_is_too_long(address: Broker) {
    let mut rules = settings(2);
    rules.federation.rounds = 3;
    let status = topic::node(&rules.federation.name, &NodeId::new("vandal").unwrap(), Channel::Status);
    let (vandal, mut events) = AsyncClient::new(plain_options(&address, None, "vandal").unwrap(), 10);
    vandal.publish(&status, QoS::AtLeastOnce, true, vec![7; 1_000_000]).await.unwrap();
    while !matches!(events.poll().await.unwrap(), Event::Incoming(Packet::PubAck(_))) {}
    let running = Running::start(address.clone(), federation(rules), Shelf::default()).await;
    let nodes = ["a", "b"].map(|name| Node::start(address.clone(), name, 1, Behaviour::Obeys));
    let (outcome, rounds) = running.end().await;
    assert_eq!((outcome.federation.phase(), rounds.len()), (Phase::Finished, 3));
    let told: u32 = rounds.iter().filter_map(|round| round.record.strangers.get(&Refusal::Malformed)).sum();
    assert_eq!(told, 1, "refused once, over one connection");
    drop(nodes);

    let options = LinkOptions { subscriptions: vec![status.clone()], ..LinkOptions::new(address, "ear") };
    let (ear, mut heard) = Link::connect(options).unwrap();
    heard.first_connection(std::time::Duration::from_secs(60)).await.unwrap();
    let dead = Message::Status(Status { session: 1, life: Life::Dead });
    ear.publish(&status, &dead, false).await.unwrap();
    assert!(matches!(heard.next().await, Some(LinkEvent::Connected { .. })));
    let next = heard.next().await;
    assert!(matches!(next, Some(LinkEvent::Message { .. })), "nothing is kept any more: {next:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retained_packet_that_is_too_long_is_swept_off_the_embedded_broker() {
    // As it comes, it would not keep such a packet in the first place.
    let options =
        BrokerOptions { retained_message_bytes_max: 2_000_000, ..BrokerOptions::local(Access::Open) };
    let broker = EmbeddedBroker::start(options).await.unwrap();
    outlives_a_retained_packet_that_is_too_long(address(&broker)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retained_packet_that_is_too_long_is_swept_off_mosquitto() {
    let broker = Mosquitto::start();
    outlives_a_retained_packet_that_is_too_long(broker.broker()).await;
}

/// A node in the lobby asks for the model's file again and again: few bytes in, few answers out.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_again_and_again_is_not_answered_every_time() {
    let broker = broker(Access::Open).await;
    let running = Running::start(address(&broker), federation(settings(3)), Shelf::default()).await;
    let mut greedy = Node::start(address(&broker), "greedy", 1, Behaviour::Obeys);
    greedy.is_greeted().await;
    let (asking, mut events) = Link::connect(LinkOptions::new(address(&broker), "asking")).unwrap();
    events.first_connection(std::time::Duration::from_secs(60)).await.unwrap();
    let update = topic::node(&settings(3).federation.name, &NodeId::new("greedy").unwrap(), Channel::Update);
    let wish = Message::Answer(Answer::NeedGraph(Digest::of(b"graph")));
    for _ in 0..1_000 {
        asking.publish(&update, &wish, false).await.unwrap();
    }
    // The broker has them all, so the coordinator hears them before anything that is said from now on.
    asking.close(std::time::Duration::from_secs(60)).await.unwrap();
    let nodes = ["a", "b"].map(|name| Node::start(address(&broker), name, 1, Behaviour::Obeys));
    let (outcome, _) = running.end().await;
    let graphs = outcome.traffic.bytes_up / blueprint().onnx.len() as u64;
    assert!(graphs < 64 + 8 * 3, "{graphs} times the file, models included");
    for node in nodes {
        node.end().await;
    }
    greedy.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_broker_is_one_clear_sentence() {
    let nobody = Broker::parse(&format!("mqtt://127.0.0.1:{}", free_port())).unwrap();
    let connection =
        Connection { patience: std::time::Duration::from_millis(200), ..Connection::new(nobody) };
    let error = Coordinator::connect(connection, federation(settings(1))).await.err().unwrap();
    assert!(error.to_string().starts_with("cannot reach broker 127.0.0.1:"), "{error}");
    assert_eq!(error.exit(), evenhand_protocol::exit::Exit::Broker);
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
