//! The dashboard of a running federation.

use std::collections::{BTreeMap, BTreeSet};

use evenhand_broker::{Access, BrokerOptions, COORDINATOR, EmbeddedBroker};
use evenhand_coordinator::dashboard::{CommandResult, Dashboard, LiveView, LiveViewUpdater, paths};
use evenhand_coordinator::shell::{ConnectionOptions, Coordinator};
use evenhand_coordinator::view::FederationView;
use evenhand_federation::Command;
use evenhand_link::Broker;
use evenhand_tests::houses::{self, Houses};
use evenhand_tests::http::{Listener, get};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::served::{TOKEN, command, is, options};

#[tokio::test(flavor = "multi_thread")]
async fn a_running_federation_is_shown_live_commanded_and_its_model_never_served() {
    let fleet = houses::fleet("shown", 5, 1_000_000);
    let access = Access::per_node(fleet.rules.federation.name.clone(), None);
    let password = access.password().unwrap().to_owned();
    let embedded = EmbeddedBroker::start(BrokerOptions::local(access)).await.unwrap();
    let broker = Broker::parse(&embedded.url()).unwrap().with_credentials(COORDINATOR, password);
    let federation = fleet.federation();
    let coordinator = Coordinator::connect(ConnectionOptions::new(broker), federation).await.unwrap();
    let handle = coordinator.handle();
    let live_view = LiveView::new(FederationView::new(coordinator.federation()));
    let operator = handle.clone();
    let command_sink = move |command| -> CommandResult {
        let operator = operator.clone();
        Box::pin(async move { operator.command(command).await })
    };
    let dashboard = Dashboard::start(options(), live_view.clone(), Box::new(command_sink)).await.unwrap();
    let address = dashboard.address();
    let coordinator = coordinator.with_observer(LiveViewUpdater::new(live_view, handle.clone()));
    let (reports, mut rounds) = mpsc::unbounded_channel();
    let running = tokio::spawn(coordinator.run(reports));
    spawn_blocking(move || {
        let refused = command(address, "re-explore", Some(TOKEN), "");
        assert_eq!(refused.status, 409, "nothing is measured yet");
        assert!(refused.text().contains("contributions are not settled yet"), "{}", refused.text());
        let unknown = command(address, "remove", Some(TOKEN), "{\"node\": \"nobody\"}");
        assert_eq!(unknown.status, 404);
        assert!(unknown.text().contains("there is no node nobody"), "{}", unknown.text());
    })
    .await
    .unwrap();
    let houses = Houses::start(houses::configs(&fleet, &embedded.url()));

    let (seen, first) = spawn_blocking(move || {
        let mut events = Listener::open(address, "/api/v1/events");
        assert_eq!(events.status, 200);
        let mut seen = Vec::new();
        let mut until = |condition: &dyn Fn(&Value) -> bool| {
            let event = events.by_ref().inspect(|event| seen.push(event.clone())).find(condition);
            event.expect("the stream goes on")
        };
        until(&|event| event["phase"] == "exploiting" && event["round"].as_u64() > Some(12));
        assert_eq!(command(address, "pause", Some(TOKEN), "").status, 202);
        until(&|event| event["phase"] == "paused" && event["open"].is_null());
        assert_eq!(get(address, "/healthz").json()["phase"], "paused");
        let first = get(address, "/api/v1/nodes").json();
        assert_eq!(command(address, "resume", Some(TOKEN), "").status, 202);
        until(&|event| event["phase"] == "exploiting");
        assert_eq!(command(address, "re-explore", Some(TOKEN), "").status, 202);
        until(&|event| event["phase"] == "exploring");
        let gone = first["nodes"][0]["id"].as_str().unwrap();
        let body = json!({ "node": gone }).to_string();
        assert_eq!(command(address, "remove", Some(TOKEN), &body).status, 202);
        let after = until(&|event| event["nodes"]["removed"] == 1);
        until(&|event| event["round"].as_u64() > after["round"].as_u64().map(|round| round + 2));
        assert_eq!(command(address, "pause", Some(TOKEN), "").status, 202);
        until(&|event| event["phase"] == "paused" && event["open"].is_null());
        (seen, first)
    })
    .await
    .unwrap();
    let phases: BTreeSet<&str> = seen.iter().map(|event| event["phase"].as_str().unwrap()).collect();
    assert!(phases.is_superset(&BTreeSet::from(["exploring", "exploiting", "paused"])), "{phases:?}");
    assert!(seen.windows(2).all(|two| two[0]["version"].as_u64() <= two[1]["version"].as_u64()));

    // What is shown is what happened.
    let mut records = Vec::new();
    let mut models = BTreeSet::new();
    while let Ok(round) = rounds.try_recv() {
        let weights = round.evidence.weights.values().iter().flat_map(|value| value.to_le_bytes());
        models.insert(weights.collect::<Vec<u8>>());
        records.push(round.evidence.round.clone());
    }
    let bodies = spawn_blocking(move || {
        let fixed = paths().into_iter().filter(|path| !path.contains('{') && !path.ends_with("/events"));
        let mut all: Vec<String> = fixed.map(str::to_owned).collect();
        let ids =
            first["nodes"].as_array().unwrap().iter().map(|node| node["id"].as_str().unwrap().to_owned());
        all.extend(ids.map(|id| format!("/api/v1/nodes/{id}")));
        all.into_iter().map(|path| (path.clone(), get(address, &path))).collect::<BTreeMap<_, _>>()
    })
    .await
    .unwrap();
    let last = records.last().unwrap();
    let nodes = bodies["/api/v1/nodes"].json();
    assert_eq!(nodes["round"], last.round);
    for (shown, node) in nodes["nodes"].as_array().unwrap().iter().zip(&last.nodes) {
        assert_eq!(shown["id"], node.node.as_str());
        assert!(is(&shown["standing"], node.standing));
        assert!(is(&shown["standing_error"], node.standing_error));
        assert!(is(&shown["probability"], node.sampling_probability));
        assert_eq!(shown["drawn"], node.drawn);
        assert_eq!(shown["staleness"], node.staleness);
    }
    assert!(nodes["nodes"][0]["removed"].is_u64());
    let points = bodies["/api/v1/rounds"].json()["rounds"].as_array().unwrap().clone();
    for (point, record) in points.iter().zip(&records) {
        assert_eq!(point["from"], record.round);
        assert!(is(&point["loss"], record.loss.unwrap()));
        match record.verdict.as_ref().and_then(|verdict| verdict.p_value) {
            Some(p_value) => assert!(is(&point["p_value"], p_value)),
            None => assert!(point["p_value"].is_null()),
        }
        assert_eq!(point["asked"], record.asked().count());
        assert_eq!(point["arrived"], record.arrived());
    }
    let draws = bodies["/api/v1/draws"].json();
    for (column, row) in draws["rows"].as_array().unwrap().iter().enumerate() {
        let drawn: String =
            records.iter().map(|r| if r.nodes[column].was_asked() { '9' } else { '0' }).collect();
        assert_eq!(row["shares"], drawn, "{}", row["id"]);
    }

    // The latest model is the reward: no answer holds a piece of any model, in bytes or in words.
    assert!(models.len() > 10);
    for model in &models {
        let word = |at: usize| f32::from_le_bytes(model[at..at + 4].try_into().unwrap()).to_string();
        let words = [word(0), word(4), word(400)];
        for (path, answer) in &bodies {
            let piece = &model[..16];
            assert!(!answer.body.windows(16).any(|bytes| bytes == piece), "{path}");
            let text = answer.text();
            assert!(!words.iter().all(|word| text.contains(word.as_str())), "{path}");
        }
    }

    // It says how it ended, and then ends.
    let farewell = spawn_blocking(move || Listener::open(address, "/api/v1/events").last().unwrap());
    handle.command(Command::Finish).await.unwrap();
    running.await.unwrap().unwrap();
    houses.stop().await;
    dashboard.stop().await;
    assert_eq!(farewell.await.unwrap()["phase"], "finished");
}
