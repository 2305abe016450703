//! A federation on a RabbitMQ cluster that loses a member: nodes and coordinator move over, and nothing is lost.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use evenhand_broker::COORDINATOR;
use evenhand_coordinator::shell::ConnectionOptions;
use evenhand_federation::{NodeResponse, NodeRound, Rules};
use evenhand_link::{Broker, Link, LinkOptions};
use evenhand_protocol::message::Phase;
use evenhand_protocol::topic::{self, Channel};
use evenhand_tests::houses::{self, CONNECT_TIMEOUT, Houses};
use evenhand_tests::rabbit::Rabbits;

const ROUNDS: u32 = 150;

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_loses_a_member_loses_nothing() {
    let mut fleet = houses::fleet("clustered", 6, ROUNDS);
    // What ends a round must be answers, not time: an answer that was lost would be waited for.
    let mut settings = (*fleet.rules).clone();
    settings.federation.round_deadline_ms = 3_600_000;
    fleet.rules = Rules::new(settings).unwrap();

    let mut cluster = tokio::task::spawn_blocking(Rabbits::start).await.unwrap();
    let name = fleet.rules.federation.name.as_str();
    cluster.admit(&["coordinator", name], "the coordinator's password");
    let passwords = tempfile::tempdir().unwrap();
    let mut configs = houses::configs(&fleet, &cluster.url());
    for config in &mut configs {
        let id = config.node.id.to_string();
        let file = passwords.path().join(&id);
        std::fs::write(&file, format!("{id}'s password")).unwrap();
        cluster.admit(&["node", name, &id], &format!("{id}'s password"));
        config.broker.password_file = Some(file);
    }
    // A node may listen under its own name and under no other, with its own session and no other: not even that of a
    // node whose name ends like its own.
    let (own, other) = (&fleet.nodes[0].id, &fleet.nodes[1].id);
    for (listened, session, allowed) in [
        (own, format!("evenhand-{name}-{own}"), true),
        (other, format!("evenhand-{name}-{own}"), false),
        (own, format!("evenhand-{name}-north-{own}"), false),
        (own, format!("evenhand-coordinator-{name}"), false),
    ] {
        let login = Broker::parse(&cluster.url())
            .unwrap()
            .with_credentials(own.as_str(), format!("{own}'s password"));
        let mut options = LinkOptions::new(login, &session);
        options.subscriptions = vec![topic::node(&fleet.rules.federation.name, listened, Channel::Task)];
        let (publisher, mut events) = Link::connect(options).unwrap();
        let timeout = if allowed { CONNECT_TIMEOUT } else { Duration::from_secs(3) };
        assert_eq!(
            events.first_connection(timeout).await.is_ok(),
            allowed,
            "{own} listens to {listened} as {session}"
        );
        let _refused = publisher.close(Duration::ZERO).await;
    }

    let broker = Broker::parse(&cluster.url()).unwrap();
    let broker = broker.with_credentials(COORDINATOR, "the coordinator's password");
    let mut running = houses::coordinate(ConnectionOptions::new(broker), &fleet).await;
    let nodes = Houses::start(configs);

    let mut records = Vec::new();
    while records.len() < 10 {
        records.push(running.rounds.recv().await.unwrap());
    }
    let clients: Vec<usize> = (1..=3).map(|number| cluster.clients(number)).collect();
    let busiest = (1..=3).max_by_key(|number| clients[number - 1]).unwrap();
    assert!(clients[busiest - 1] >= 2, "{clients:?}");
    cluster.kill(busiest);
    while let Ok(closed) = running.rounds.try_recv() {
        records.push(closed);
    }
    assert!(records.len() < ROUNDS as usize, "the member was killed too late to matter");
    while let Some(closed) = running.rounds.recv().await {
        records.push(closed);
    }
    assert_eq!(running.outcome.await.unwrap().federation.phase(), Phase::Finished);
    assert_eq!(records.len(), ROUNDS as usize);
    for closed in &records {
        let record = &closed.round;
        let arrived = |node: &&NodeRound| matches!(node.response, NodeResponse::Arrived { .. });
        let unanswered: Vec<&NodeRound> = record.asked().filter(|node| !arrived(node)).collect();
        assert!(unanswered.is_empty(), "round {}: {unanswered:?}", record.round);
        assert!(record.unknown_refusals.is_empty());
    }
    nodes.stop().await;
}
