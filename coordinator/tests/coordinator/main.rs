//! The coordinator over the embedded broker, with scripted nodes.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use evenhand_broker::{Access, BrokerOptions, COORDINATOR, EmbeddedBroker};
use evenhand_coordinator::joining::{self, CoordinatorKeys, JoinGate, JoinPolicy};
use evenhand_coordinator::shell::{
    CommandError, ConnectionOptions, Coordinator, CoordinatorHandle, Persistence, PersistenceError,
    ShellError, StoppedCoordinator, TimedRound,
};
use evenhand_federation::{
    Command, CommandRejection, Federation, FederationConfig, InitialModel, NodeResponse, RoundEvidence,
    Rules, SavedFederation,
};
use evenhand_link::testing::Mosquitto;
use evenhand_link::{Broker, Link, LinkEvent, LinkOptions, rumqttc_options};
use evenhand_protocol::identity::{Digest, FederationId, NodeId};
use evenhand_protocol::message::{Answer, Life, Message, Phase, Refusal, Status};
use evenhand_protocol::topic::{self, Channel};
use evenhand_seal::Entropy;
use evenhand_testkit::scripted_node::{NodeScript, ScriptedNode};
use rumqttc::{AsyncClient, Event, Packet, QoS};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

const DIM: usize = 40_000;

/// Rounds have a long deadline: answers and wills must end them.
fn settings(nodes: u32) -> FederationConfig {
    let mut settings = FederationConfig::default();
    settings.federation.policy = evenhand_federation::Policy::Paper;
    settings.federation.nodes_min = nodes;
    settings.federation.rounds = 8;
    settings.federation.round_deadline_ms = 3_600_000;
    settings.training.learning_rate = 0.5;
    settings.exploring.tested_nodes = 1;
    settings.exploring.window = 2;
    settings.exploring.rounds_max = 3;
    settings.exploiting.k = nodes.min(2);
    settings.exploiting.temperature = 0.1;
    settings
}

fn initial_model() -> InitialModel {
    InitialModel {
        graph: Digest::of(b"graph"),
        onnx: vec![7; 300_000].into(),
        weights: (0..DIM).map(|i| (i % 17) as f32).collect::<Vec<f32>>().into(),
    }
}

fn federation(settings: FederationConfig) -> Federation {
    Federation::new(Rules::new(settings).unwrap(), initial_model())
}

async fn broker(access: Access) -> EmbeddedBroker {
    EmbeddedBroker::start(BrokerOptions::local(access)).await.unwrap()
}

fn address(broker: &EmbeddedBroker) -> Broker {
    Broker::parse(&broker.url()).unwrap()
}

/// A running coordinator.
struct RunningCoordinator {
    handle: CoordinatorHandle,
    rounds: mpsc::UnboundedReceiver<TimedRound>,
    stopped: JoinHandle<Result<StoppedCoordinator, ShellError>>,
}

impl RunningCoordinator {
    async fn start(broker: Broker, federation: Federation, persistence: impl Persistence + 'static) -> Self {
        // The same keys after a restart.
        let keys = CoordinatorKeys::generate(&mut Entropy::from_seed([9; 32]));
        let name = federation.rules().federation.name.clone();
        let gate = joining::sealing(name, keys, JoinGate::in_memory(JoinPolicy::Open)).unwrap();
        let connection = ConnectionOptions { sealing: Some(gate), ..ConnectionOptions::new(broker) };
        let coordinator = Coordinator::connect(connection, federation).await.unwrap();
        let coordinator = coordinator.with_persistence(persistence);
        let handle = coordinator.handle();
        let (sender, rounds) = mpsc::unbounded_channel();
        Self { handle, rounds, stopped: tokio::spawn(coordinator.run(sender)) }
    }

    async fn round(&mut self) -> Arc<RoundEvidence> {
        self.rounds.recv().await.expect("another round").evidence
    }

    async fn end(mut self) -> (StoppedCoordinator, Vec<Arc<RoundEvidence>>) {
        let stopped = self.stopped.await.unwrap().unwrap();
        let mut rounds = Vec::new();
        while let Some(round) = self.rounds.recv().await {
            rounds.push(round.evidence);
        }
        (stopped, rounds)
    }
}

/// Stores the last state in memory.
#[derive(Clone, Default)]
struct MemoryPersistence(Arc<Mutex<Option<Vec<u8>>>>);

impl Persistence for MemoryPersistence {
    fn persist(
        &mut self,
        _rounds: &[Arc<RoundEvidence>],
        saved: SavedFederation,
    ) -> Result<(), PersistenceError> {
        *self.0.lock().unwrap() = Some(saved.to_bytes());
        Ok(())
    }
}

impl MemoryPersistence {
    fn restore(&self) -> Federation {
        let bytes = self.0.lock().unwrap().clone().unwrap();
        Federation::restore(SavedFederation::from_bytes(&bytes).unwrap(), initial_model().onnx).unwrap()
    }
}

fn asked(closed: &RoundEvidence) -> BTreeSet<String> {
    closed.round.asked().map(|node| node.node.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_federation_enrols_explores_exploits_and_finishes_and_tasks_reach_only_drawn_nodes() {
    let broker = broker(Access::Open).await;
    let running =
        RunningCoordinator::start(address(&broker), federation(settings(5)), MemoryPersistence::default())
            .await;
    let nodes: Vec<ScriptedNode> = (0..5)
        .map(|number| ScriptedNode::start(address(&broker), &format!("n{number}"), 1, NodeScript::AnswerAll))
        .collect();
    let (stopped, rounds) = running.end().await;
    assert_eq!(stopped.federation.phase(), Phase::Finished);
    assert_eq!(rounds.len(), 8);
    let phases: Vec<Phase> = rounds.iter().map(|closed| closed.round.phase).collect();
    assert_eq!(phases[..3], [Phase::Exploring; 3]);
    assert_eq!(phases[3..], [Phase::Exploiting; 5]);
    for closed in &rounds {
        assert_eq!(closed.round.arrived(), asked(closed).len(), "every node answered");
    }

    // Each node received the tasks that it was drawn for according to the records.
    let mut received: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    for node in nodes {
        let transcript = node.finish().await;
        assert_eq!(transcript.phases.last(), Some(&Phase::Finished));
        let account = transcript.account.expect("an account");
        let last = rounds.last().unwrap().round.nodes.iter().find(|row| row.node == transcript.id).unwrap();
        assert_eq!((account.standing, account.drawn), (last.standing, last.drawn));
        for (round, digest) in transcript.tasks {
            let record = &rounds[round as usize - 1].round;
            assert_eq!(digest, record.weights_before);
            received.entry(round).or_default().insert(transcript.id.to_string());
        }
    }
    for closed in &rounds {
        assert_eq!(received[&closed.round.round], asked(closed));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_disconnects_in_a_round_is_given_up_at_once_and_can_return() {
    let access = Access::per_node(FederationId::new("home").unwrap(), None);
    let password = access.password().unwrap().to_owned();
    let broker = broker(access).await;
    let address = address(&broker);
    let login = address.clone().with_credentials(COORDINATOR, password);
    let mut rules = settings(3);
    // Longer than the federation: it explores all the time.
    rules.exploring.window = 100;
    rules.exploring.rounds_max = 100;
    let mut running = RunningCoordinator::start(login, federation(rules), MemoryPersistence::default()).await;
    let a = ScriptedNode::start(address.clone(), "a", 1, NodeScript::WaitFrom(3));
    let b = ScriptedNode::start(address.clone(), "b", 1, NodeScript::AnswerAll);
    let leaving = ScriptedNode::start(address.clone(), "c", 1, NodeScript::DisconnectIn(2));
    assert_eq!(running.round().await.round.arrived(), 3);
    let second = running.round().await;
    assert_eq!(second.round.nodes[2].response, NodeResponse::Disconnected, "its will ended the wait");
    leaving.finish().await;
    let mut back = ScriptedNode::start(address.clone(), "c", 2, NodeScript::AnswerAll);
    back.wait_for_manifest().await;
    a.proceed();
    assert_eq!(running.round().await.round.arrived(), 2, "it was offline when round 3 was drawn");
    assert_eq!(running.round().await.round.arrived(), 3, "and online for round 4");
    let (stopped, _) = running.end().await;
    let member = &stopped.federation.members()[2];
    assert_eq!(
        (member.id().as_str(), member.standing().rounds()),
        ("c", 8),
        "it was measured in every round"
    );
    for node in [a, b, back] {
        node.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_will_of_an_old_session_does_not_take_a_node_offline() {
    let broker = broker(Access::Open).await;
    let mut rules = settings(2);
    rules.federation.rounds = 3;
    let mut running =
        RunningCoordinator::start(address(&broker), federation(rules.clone()), MemoryPersistence::default())
            .await;
    // Somebody else declares b dead.
    let a = ScriptedNode::start(address(&broker), "a", 1, NodeScript::WaitFrom(2));
    let b = ScriptedNode::start(address(&broker), "b", 2, NodeScript::AnswerAll);
    assert_eq!(running.round().await.round.arrived(), 2);
    let (ghost, mut events) = Link::connect(LinkOptions::new(address(&broker), "ghost")).unwrap();
    events.first_connection(std::time::Duration::from_secs(60)).await.unwrap();
    let status = topic::node(&rules.federation.name, &NodeId::new("b").unwrap(), Channel::Status);
    ghost
        .publish(&status, &Message::Status(Status { session: u64::MAX, life: Life::Dead }), true)
        .await
        .unwrap();
    ghost.close(std::time::Duration::from_secs(60)).await.unwrap();
    // Only now does a answer its second task: with the death in effect, b would be missing from round 3.
    a.proceed();
    assert_eq!(running.round().await.round.arrived(), 2);
    let third = running.round().await;
    assert_eq!(third.round.arrived(), 2);
    running.end().await;
    a.finish().await;
    b.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_nodes_resume_after_a_restart_of_the_broker() {
    let first = broker(Access::Open).await;
    let listen = first.address();
    let mut rules = settings(3);
    rules.federation.rounds = 6;
    let mut running =
        RunningCoordinator::start(address(&first), federation(rules), MemoryPersistence::default()).await;
    let nodes: Vec<ScriptedNode> = ["a", "b", "c"]
        .map(|name| ScriptedNode::start(address(&first), name, 1, NodeScript::WaitFrom(2)))
        .into();
    assert_eq!(running.round().await.round.arrived(), 3);
    // All have round 2's task unanswered when the broker stops and loses its state.
    first.stop().await;
    let second = EmbeddedBroker::start(BrokerOptions::new(listen, Access::Open)).await.unwrap();
    nodes.iter().for_each(ScriptedNode::proceed);
    let (stopped, rounds) = running.end().await;
    assert_eq!(stopped.federation.phase(), Phase::Finished);
    assert_eq!(rounds.len(), 5);
    drop(nodes);
    drop(second);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_coordinator_resumes_the_open_round() {
    let broker = broker(Access::Open).await;
    let persistence = MemoryPersistence::default();
    let mut running =
        RunningCoordinator::start(address(&broker), federation(settings(3)), persistence.clone()).await;
    let nodes: Vec<ScriptedNode> = ["a", "b", "c"]
        .map(|name| ScriptedNode::start(address(&broker), name, 1, NodeScript::WaitFrom(5)))
        .into();
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
    let mut running =
        RunningCoordinator::start(address(&broker), persistence.restore(), persistence.clone()).await;
    nodes.iter().for_each(ScriptedNode::proceed);
    let fifth = running.round().await;
    assert_eq!((fifth.round.round, asked(&fifth)), (5, drawn));
    let (stopped, _) = running.end().await;
    assert_eq!(stopped.federation.phase(), Phase::Finished);
    drop(nodes);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_can_pause_resume_and_finish() {
    let broker = broker(Access::Open).await;
    let mut running =
        RunningCoordinator::start(address(&broker), federation(settings(2)), MemoryPersistence::default())
            .await;
    let nodes: Vec<ScriptedNode> =
        ["a", "b"].map(|name| ScriptedNode::start(address(&broker), name, 1, NodeScript::WaitFrom(2))).into();
    running.round().await;
    assert_eq!(running.handle.command(Command::Pause).await, Ok(()));
    assert_eq!(running.handle.command(Command::Begin).await, Err(CommandRejection::Begun.into()));
    assert_eq!(running.handle.command(Command::Resume).await, Ok(()));
    nodes.iter().for_each(ScriptedNode::proceed);
    assert_eq!(running.round().await.round.round, 2);
    assert_eq!(running.handle.command(Command::Finish).await, Ok(()));
    let handle = running.handle.clone();
    let (stopped, _) = running.end().await;
    assert_eq!(handle.command(Command::Pause).await, Err(CommandError::ShuttingDown));
    assert_eq!(stopped.federation.phase(), Phase::Finished);
    for node in nodes {
        assert_eq!(node.finish().await.phases.last(), Some(&Phase::Finished));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_cannot_be_saved_is_never_announced() {
    struct FullDisk;
    impl Persistence for FullDisk {
        fn persist(
            &mut self,
            _rounds: &[Arc<RoundEvidence>],
            _saved: SavedFederation,
        ) -> Result<(), PersistenceError> {
            Err("no space left on device".into())
        }
    }
    let broker = broker(Access::Open).await;
    let running = RunningCoordinator::start(address(&broker), federation(settings(1)), FullDisk).await;
    let node = ScriptedNode::start(address(&broker), "a", 1, NodeScript::AnswerAll);
    let error = running.stopped.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("no space left on device"), "{error}");
    assert!(node.stop().await.tasks.is_empty());
}

/// A client leaves a retained packet on a node's topic that is larger than any message; the federation continues, and the
/// coordinator clears it.
async fn an_oversized_retained_packet_is_cleared(address: Broker) {
    let mut rules = settings(2);
    rules.federation.rounds = 3;
    let status = topic::node(&rules.federation.name, &NodeId::new("vandal").unwrap(), Channel::Status);
    let (vandal, mut events) = AsyncClient::new(rumqttc_options(&address, None, "vandal").unwrap(), 10);
    vandal.publish(&status, QoS::AtLeastOnce, true, vec![7; 1_000_000]).await.unwrap();
    while !matches!(events.poll().await.unwrap(), Event::Incoming(Packet::PubAck(_))) {}
    let running =
        RunningCoordinator::start(address.clone(), federation(rules), MemoryPersistence::default()).await;
    let nodes = ["a", "b"].map(|name| ScriptedNode::start(address.clone(), name, 1, NodeScript::AnswerAll));
    let (stopped, rounds) = running.end().await;
    assert_eq!((stopped.federation.phase(), rounds.len()), (Phase::Finished, 3));
    let refused: u32 =
        rounds.iter().filter_map(|round| round.round.unknown_refusals.get(&Refusal::Malformed)).sum();
    assert_eq!(refused, 0, "what nobody vouches for is no input");
    drop(nodes);

    let options =
        LinkOptions { subscriptions: vec![status.clone()], ..LinkOptions::new(address, "listener") };
    let (listener, mut events) = Link::connect(options).unwrap();
    events.first_connection(std::time::Duration::from_secs(60)).await.unwrap();
    let dead = Message::Status(Status { session: 1, life: Life::Dead });
    listener.publish(&status, &dead, false).await.unwrap();
    assert!(matches!(events.next().await, Some(LinkEvent::Connected { .. })));
    let next = events.next().await;
    assert!(matches!(next, Some(LinkEvent::Message { .. })), "no message is retained any more: {next:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oversized_retained_packet_is_cleared_on_the_embedded_broker() {
    // With the default limit it would not retain such a packet.
    let options =
        BrokerOptions { retained_message_bytes_max: 2_000_000, ..BrokerOptions::local(Access::Open) };
    let broker = EmbeddedBroker::start(options).await.unwrap();
    an_oversized_retained_packet_is_cleared(address(&broker)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oversized_retained_packet_is_cleared_on_mosquitto() {
    let broker = Mosquitto::start();
    an_oversized_retained_packet_is_cleared(broker.broker()).await;
}

/// Requests in the name of a node that nobody vouches for cause no answers.
#[tokio::test(flavor = "multi_thread")]
async fn forged_requests_cost_nothing() {
    let broker = broker(Access::Open).await;
    let running =
        RunningCoordinator::start(address(&broker), federation(settings(3)), MemoryPersistence::default())
            .await;
    let mut greedy = ScriptedNode::start(address(&broker), "greedy", 1, NodeScript::AnswerAll);
    greedy.wait_for_manifest().await;
    let (asking, mut events) = Link::connect(LinkOptions::new(address(&broker), "asking")).unwrap();
    events.first_connection(std::time::Duration::from_secs(60)).await.unwrap();
    let update = topic::node(&settings(3).federation.name, &NodeId::new("greedy").unwrap(), Channel::Update);
    let request = Message::Answer(Answer::NeedGraph(Digest::of(b"graph")));
    for _ in 0..1_000 {
        asking.publish(&update, &request, false).await.unwrap();
    }
    // The broker has them all, so the coordinator receives them before later messages.
    asking.close(std::time::Duration::from_secs(60)).await.unwrap();
    let nodes = ["a", "b"].map(|name| ScriptedNode::start(address(&broker), name, 1, NodeScript::AnswerAll));
    let (stopped, _) = running.end().await;
    let graphs = stopped.traffic.bytes_up / initial_model().onnx.len() as u64;
    assert!(graphs < 8 * 3, "{graphs} times the file, models included");
    for node in nodes {
        node.finish().await;
    }
    greedy.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_broker_is_one_clear_sentence() {
    let unreachable = Broker::parse(&format!("mqtt://127.0.0.1:{}", free_port())).unwrap();
    let connection = ConnectionOptions {
        connect_timeout: std::time::Duration::from_millis(200),
        ..ConnectionOptions::new(unreachable)
    };
    let error = Coordinator::connect(connection, federation(settings(1))).await.err().unwrap();
    assert!(error.to_string().starts_with("cannot reach broker 127.0.0.1:"), "{error}");
    assert_eq!(error.exit(), evenhand_program::exit::Exit::Broker);
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
