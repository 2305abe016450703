//! The health of a federation that has failed.

use std::future::ready;
use std::net::SocketAddr;

use evenhand_coordinator::dashboard::{CommandResult, Dashboard, DashboardOptions, LiveView};
use evenhand_coordinator::view::FederationView;
use evenhand_federation::{Intervention, Policy};
use evenhand_link::Broker;
use evenhand_link::testing::free_port;
use evenhand_protocol::codec::Bf16;
use evenhand_protocol::message::{Answer, Measured, Phase, Update};
use evenhand_testkit::federation::scripted::{ScriptedFederation, small_config, update};
use evenhand_testkit::scripted_node::{NodeScript, ScriptedNode};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use super::{answer, request, start_with, wait_for};

const REMEDY: &str = "lower training.learning_rate or admission.norm_max";

/// A federation whose losses rise a thousandfold after ten rounds, whatever the guard restores.
fn given_up() -> ScriptedFederation {
    let mut config = small_config(2);
    config.federation.policy = Policy::Continuous;
    config.federation.nodes_max = 2;
    config.exploiting.k = 2;
    let mut world = ScriptedFederation::with(config, 4, &["a", "b"]);
    for number in 1..=60u32 {
        if world.phase() == Phase::Failed {
            break;
        }
        let round = world.federation().round();
        for (name, value) in [("a", 1.0), ("b", 2.0)] {
            let vector = Bf16::encode(&[value, 1.0, number as f32, 3.0]);
            world.answers(name, Answer::Measured(Measured { round, samples: 5, skill: None, vector }));
        }
        let drawn: Vec<String> = world.asked(round).into_iter().map(str::to_owned).collect();
        for name in drawn {
            let loss = if number <= 10 { 1.0 } else { 1000.0 };
            let sent = Update { loss, ..update(round, 5, &[0.01; 4]) };
            world.answers(&name, Answer::Update(sent));
        }
    }
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_guard_gives_up_the_health_is_503_with_a_remedy() {
    let world = given_up();
    assert_eq!(world.phase(), Phase::Failed);
    let restored = world
        .closed
        .iter()
        .filter(|closed| matches!(closed.round.intervention, Some(Intervention::Restored { .. })));
    assert!(restored.count() >= 5, "the guard tried before it gave up");
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let no_commands = |_| -> CommandResult { Box::pin(ready(Ok(()))) };
    let view = LiveView::new(FederationView::new(world.federation()));
    let dashboard =
        Dashboard::start(DashboardOptions::new(listen), view, Box::new(no_commands)).await.unwrap();
    let port = dashboard.address().port();
    let (head, health) = spawn_blocking(move || {
        (answer(port, "GET", "/healthz").unwrap(), request(port, "GET", "/healthz").unwrap())
    })
    .await
    .unwrap();
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    assert_eq!((&health["status"], &health["phase"]), (&"failed".into(), &"failed".into()));
    let sentence = health["error"].as_str().unwrap();
    assert!(sentence.contains("the model diverged in round") && sentence.contains(REMEDY), "{sentence}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_whose_federation_failed_says_so_until_it_is_stopped() {
    let folder = TempDir::new().unwrap();
    let (broker_port, port) = (free_port(), free_port());
    let mut running =
        start_with(folder.path(), broker_port, port, |config| config.training.learning_rate = 1e300);
    let healthy = wait_for(port, "/healthz", |health| health["phase"] == "enrolling");
    assert!(healthy["error"].is_null() && healthy["status"] == "ok", "{healthy}");
    let broker = Broker::parse(&format!("mqtt://127.0.0.1:{broker_port}")).unwrap();
    let _nodes =
        ["n0", "n1", "n2"].map(|name| ScriptedNode::start(broker.clone(), name, 1, NodeScript::AnswerAll));
    let health = wait_for(port, "/healthz", |health| health["phase"] == "failed");
    assert!(health["error"].as_str().unwrap().contains(REMEDY), "{health}");
    assert!(answer(port, "GET", "/healthz").unwrap().starts_with("HTTP/1.1 503"));
    assert!(running.try_wait().unwrap().is_none(), "it stays");
    running.kill().unwrap();
    running.wait().unwrap();
}
