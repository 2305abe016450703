//! The dashboard over real sockets: what it serves, to whom, and what it never serves.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenhand_coordinator::broker::{Access, BrokerOptions, COORDINATOR, EmbeddedBroker};
use evenhand_coordinator::dashboard::{Board, Dashboard, DashboardOptions, Token, Watcher, paths};
use evenhand_coordinator::federation::{Command, Federation};
use evenhand_coordinator::shell::{Connection, Coordinator};
use evenhand_coordinator::view::View;
use evenhand_link::Broker;
use evenhand_tests::houses::{self, Houses};
use evenhand_tests::http::{self, Listener, get, request};
use evenhand_tests::synthetic;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

const TOKEN: &str = "correct horse battery staple";

fn options() -> DashboardOptions {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let mut options = DashboardOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    options.token = Some(Token::read(&file).unwrap());
    options.pace = Duration::ZERO;
    options
}

/// A dashboard of a made-up federation, and the commands it was given.
async fn served(view: View, options: DashboardOptions) -> (Dashboard, Arc<Mutex<Vec<Command>>>) {
    let commands = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&commands);
    let commander = Box::new(move |command| heard.lock().unwrap().push(command));
    (Dashboard::start(options, Board::new(view), commander).await.unwrap(), commands)
}

fn command(address: SocketAddr, name: &str, token: Option<&str>, body: &str) -> http::Answer {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let headers: Vec<(&str, &str)> = bearer.iter().map(|bearer| ("Authorization", bearer.as_str())).collect();
    request(address, "POST", &format!("/api/v1/commands/{name}"), &headers, body)
}

/// Whether a number arrived; serde_json reads floats to the last bit but one.
fn is(shown: &Value, value: f64) -> bool {
    shown.as_f64().is_some_and(|shown| (shown - value).abs() <= 1e-15 * value.abs())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_federation_is_shown_live_commanded_and_its_model_never_served() {
    let access = Access::per_node();
    let password = access.password().unwrap().to_owned();
    let embedded = EmbeddedBroker::start(BrokerOptions::local(access)).await.unwrap();
    let fleet = houses::fleet("shown", 5, 1_000_000);
    let broker = Broker::parse(&embedded.url()).unwrap().with_credentials(COORDINATOR, password);
    let federation = Federation::new(fleet.rules.clone(), fleet.blueprint.clone());
    let coordinator = Coordinator::connect(Connection::new(broker), federation).await.unwrap();
    let handle = coordinator.handle();
    let board = Board::new(View::new(coordinator.federation()));
    let commander = handle.clone();
    let dashboard = Dashboard::start(options(), board.clone(), Box::new(move |wish| commander.command(wish)))
        .await
        .unwrap();
    let address = dashboard.address();
    let coordinator = coordinator.seen_by(Watcher::new(board, handle.clone()));
    let (reports, mut rounds) = mpsc::unbounded_channel();
    let running = tokio::spawn(coordinator.run(reports));
    let mut configs = houses::configs(&fleet, &embedded.url());
    for config in &mut configs {
        config.broker.username = Some(config.node.id.to_string());
    }
    let houses = Houses::start(configs);

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
    while let Ok(report) = rounds.try_recv() {
        let weights = report.closed.weights.values().iter().flat_map(|value| value.to_le_bytes());
        models.insert(weights.collect::<Vec<u8>>());
        records.push(report.closed.record.clone());
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
    handle.command(Command::Finish);
    running.await.unwrap().unwrap();
    houses.stop().await;
    dashboard.stop().await;
    assert_eq!(farewell.await.unwrap()["phase"], "finished");
}

/// Whether a value is what a schema says: types, required and known fields, all the way down.
fn conforms(value: &Value, schema: &Value, root: &Value, at: &str) {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap();
        return conforms(value, &root["components"]["schemas"][name], root, at);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let fits = choices.iter().find(|choice| (choice["type"] == "null") == value.is_null());
        return conforms(value, fits.unwrap(), root, at);
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().map(|kind| kind.as_str().unwrap()).collect(),
        other => panic!("{at}: the schema has type {other}"),
    };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_u64() && kinds.contains(&"integer") => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    assert!(kinds.contains(&kind), "{at}: {value} is no {kinds:?}");
    if let Some(words) = schema["enum"].as_array() {
        assert!(words.contains(value), "{at}: {value} is none of {words:?}");
    }
    match value {
        Value::Array(items) => {
            assert!(!items.is_empty(), "{at}: an empty list shows nothing");
            items.iter().for_each(|item| conforms(item, &schema["items"], root, at));
        }
        Value::Object(fields) => {
            for name in schema["required"].as_array().into_iter().flatten() {
                assert!(fields.contains_key(name.as_str().unwrap()), "{at}: {name} is missing");
            }
            for (name, field) in fields {
                match schema["properties"].get(name) {
                    Some(property) => conforms(field, property, root, &format!("{at}.{name}")),
                    None if schema["additionalProperties"].is_object() => {
                        conforms(field, &schema["additionalProperties"], root, &format!("{at}.{name}"));
                    }
                    None => assert!(schema.get("properties").is_none(), "{at}: {name} is not described"),
                }
            }
        }
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_describes_every_route_and_every_answer() {
    let (dashboard, _) = served(synthetic::view(12, 60, 30), options()).await;
    let address = dashboard.address();
    spawn_blocking(move || {
        let document = get(address, "/api/v1/openapi.json").json();
        let described: BTreeSet<&str> =
            document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(described, paths().into_iter().collect());
        for (path, methods) in document["paths"].as_object().unwrap() {
            let url = path.replace("{id}", "meter-0003").replace("{command}", "remove");
            for (method, operation) in methods.as_object().unwrap() {
                let (answer, status) = match (method.as_str(), path.ends_with("/events")) {
                    ("get", true) => {
                        let event = Listener::open(address, &url).next().unwrap();
                        let content = &operation["responses"]["200"]["content"]["text/event-stream"];
                        conforms(&event, &content["schema"], &document, path);
                        continue;
                    }
                    ("get", false) => (get(address, &url), "200"),
                    ("post", _) => {
                        (command(address, "remove", Some(TOKEN), "{\"node\": \"meter-0003\"}"), "202")
                    }
                    other => panic!("{other:?}"),
                };
                assert_eq!(answer.status.to_string(), status, "{path}");
                let content = operation["responses"][status]["content"].as_object().unwrap();
                let (kind, content) = content.iter().next().unwrap();
                let told = answer.header("content-type").unwrap();
                assert!(told.starts_with(kind.as_str()), "{path}: {told}");
                if kind == "application/json" {
                    conforms(&answer.json(), &content["schema"], &document, path);
                }
            }
        }
        // The errors too.
        let error = &document["components"]["schemas"]["Error"];
        for answer in [
            command(address, "remove", Some(TOKEN), "{}"),
            command(address, "remove", Some(TOKEN), "{\"node\": \"nobody\"}"),
            command(address, "dance", Some(TOKEN), ""),
            command(address, "pause", None, ""),
            get(address, "/api/v1/nodes/nobody"),
            get(address, "/api/v1/rounds?from=yesterday"),
            get(address, "/nothing"),
            request(address, "DELETE", "/api/v1/nodes", &[], ""),
        ] {
            assert!((400..500).contains(&answer.status), "{answer:?}");
            conforms(&answer.json(), error, &document, "error");
        }
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_token_commands_and_only_known_names_are_answered() {
    let (dashboard, commands) = served(synthetic::view(3, 5, 5), options()).await;
    let (closed, _) = served(synthetic::view(3, 5, 5), DashboardOptions { token: None, ..options() }).await;
    let (address, read_only) = (dashboard.address(), closed.address());
    spawn_blocking(move || {
        for wrong in [None, Some(""), Some("guess"), Some("correct horse battery stapl"), Some("Bearer")] {
            let answer = command(address, "pause", wrong, "");
            assert_eq!(
                (answer.status, answer.header("www-authenticate")),
                (401, Some("Bearer")),
                "{wrong:?}"
            );
        }
        assert_eq!(command(read_only, "pause", Some(TOKEN), "").status, 403);
        assert_eq!(command(address, "resume", Some(TOKEN), "").status, 202);
        for (host, status) in
            [("evil.example", 421), ("localhost:99", 200), ("127.0.0.1", 200), ("[::1]:1", 200)]
        {
            assert_eq!(request(address, "GET", "/", &[("Host", host)], "").status, status, "{host}");
        }
        for path in ["/", "/app.js", "/api/v1/nodes", "/metrics", "/nothing"] {
            let answer = get(address, path);
            let policy = answer.header("content-security-policy").unwrap();
            assert!(policy.starts_with("default-src 'none'") && !policy.contains("http"), "{policy}");
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
            assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
            assert_eq!(answer.header("cache-control"), Some("no-store"));
        }
    })
    .await
    .unwrap();
    assert_eq!(*commands.lock().unwrap(), [Command::Resume]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_is_answered_or_dropped_and_nobody_else_notices() {
    let limits = DashboardOptions { patience: Duration::from_millis(300), ..options() };
    let (dashboard, commands) = served(synthetic::view(3, 5, 5), limits).await;
    let address = dashboard.address();
    spawn_blocking(move || {
        let long = "a".repeat(100_000);
        let host = format!("Host: {address}\r\n");
        let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
        for nonsense in [
            String::new(),
            "\0\u{1}\u{2}\r\n\r\n".into(),
            "GET\r\n\r\n".into(),
            "GET / HTTP/9.9\r\n\r\n".into(),
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(),
            format!("GET /{long} HTTP/1.1\r\n{host}\r\n"),
            format!("GET / HTTP/1.1\r\n{host}X: {long}{long}{long}{long}{long}\r\n\r\n"),
            format!("GET /api/v1/nodes/%ff%00%2e%2e HTTP/1.1\r\n{host}Connection: close\r\n\r\n"),
            format!("GET /api/v1/nodes/..%2f..%2fetc HTTP/1.1\r\n{host}Connection: close\r\n\r\n"),
            format!("GET /api/v1/rounds?from=-1 HTTP/1.1\r\n{host}Connection: close\r\n\r\n"),
            format!("GET /api/v1/rounds?from=4294967296 HTTP/1.1\r\n{host}Connection: close\r\n\r\n"),
            format!("GET /api/v1/rounds?%ff=%zz HTTP/1.1\r\n{host}Connection: close\r\n\r\n"),
            format!("POST /api/v1/commands/remove HTTP/1.1\r\n{host}{bearer}Connection: close\r\nContent-Length: 9\r\n\r\n{{\"node\":\"}}"),
            format!("POST /api/v1/commands/remove HTTP/1.1\r\n{host}{bearer}Connection: close\r\nContent-Length: 100000\r\n\r\n{long}"),
            format!("POST /api/v1/commands/remove HTTP/1.1\r\n{host}{bearer}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        ] {
            if nonsense.is_empty() {
                // Says nothing and leaves.
                drop(std::net::TcpStream::connect(address).unwrap());
                continue;
            }
            let answer = http::raw(address, nonsense.as_bytes());
            let status = String::from_utf8_lossy(&answer[..answer.len().min(12)]).into_owned();
            assert!(!status.starts_with("HTTP/1.1 5"), "{status}");
            assert_eq!(get(address, "/healthz").status, 200);
        }
    })
    .await
    .unwrap();
    assert!(commands.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn listeners_are_limited_and_those_who_do_not_read_are_dropped() {
    let limits = DashboardOptions { events_max: 2, patience: Duration::from_millis(300), ..options() };
    let (dashboard, _) = served(synthetic::view(3, 5, 5), limits).await;
    let address = dashboard.address();
    let board = dashboard.board().clone();
    spawn_blocking(move || {
        let metric = || {
            let text = get(address, "/metrics").text().to_owned();
            let line = text.lines().find(|line| line.starts_with("evenhand_dashboard_listeners ")).unwrap();
            line.rsplit(' ').next().unwrap().parse::<u32>().unwrap()
        };
        let (_first, _second) =
            (Listener::open(address, "/api/v1/events"), Listener::open(address, "/api/v1/events"));
        assert_eq!(metric(), 2);
        assert_eq!(Listener::open(address, "/api/v1/events").status, 503);
        // Neither reads what it is told: buffers fill, then patience ends.
        let federation = synthetic::federation(3, 10);
        let mut link = true;
        while metric() > 0 {
            for _ in 0..100 {
                link = !link;
                board.write(|view| {
                    view.glance(&federation, Default::default(), link);
                });
            }
        }
        assert_eq!(Listener::open(address, "/api/v1/events").status, 200);
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_prometheus_text_and_say_what_the_api_says() {
    let (dashboard, _) = served(synthetic::view(12, 60, 30), options()).await;
    let address = dashboard.address();
    spawn_blocking(move || {
        let answer = get(address, "/metrics");
        assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
        let mut kinds = BTreeMap::new();
        let mut samples = BTreeMap::new();
        for line in answer.text().lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(["gauge", "counter"].contains(&kind));
                assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} twice");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
            } else if !line.starts_with("# HELP ") {
                let (name, value) = line.rsplit_once(' ').unwrap();
                assert!(kinds.contains_key(name.split('{').next().unwrap()), "{name} comes before its type");
                assert!(
                    samples.insert(name.to_owned(), value.parse::<f64>().unwrap()).is_none(),
                    "{name} twice"
                );
            }
        }
        let federation = get(address, "/api/v1/federation").json();
        assert_eq!(samples["evenhand_round"], federation["round"].as_f64().unwrap());
        assert_eq!(samples["evenhand_phase{phase=\"exploiting\"}"], 1.0);
        assert_eq!(samples["evenhand_phase{phase=\"exploring\"}"], 0.0);
        assert!(is(&federation["stop_rule"]["p_value"], samples["evenhand_p_value"]));
        assert_eq!(
            samples["evenhand_answers_total{fate=\"arrived\"}"],
            federation["fates"]["arrived"].as_f64().unwrap()
        );
        for node in get(address, "/api/v1/nodes").json()["nodes"].as_array().unwrap() {
            let name = format!("evenhand_node_standing{{node=\"{}\"}}", node["id"].as_str().unwrap());
            assert!(is(&node["standing"], samples[&name]));
        }
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_nodes_and_thousands_of_rounds_stay_small() {
    let (short, long) = (synthetic::view(1000, 300, 100), synthetic::view(1000, 2500, 300));
    let sizes = |view: View| async {
        let (dashboard, _) = served(view, options()).await;
        let address = dashboard.address();
        let sizes = spawn_blocking(move || {
            ["nodes", "rounds", "draws", "nodes/meter-0500", "federation"]
                .map(|path| get(address, &format!("/api/v1/{path}")).body.len())
        });
        sizes.await.unwrap()
    };
    let (short, long) = (sizes(short).await, sizes(long).await);
    println!(
        "bytes of nodes, rounds, draws, a node, the federation: {short:?} after 300, {long:?} after 2,500 rounds"
    );
    assert!(long.iter().zip(short).all(|(long, short)| *long < 4 * short));
    assert!(long.iter().sum::<usize>() < 2_000_000, "{long:?}");
}

#[test]
fn thinning_a_long_history_loses_no_draw_and_no_answer() {
    for rounds in [1, 255, 256, 257, 1023, 1025, 3000] {
        let view = synthetic::view(7, rounds, rounds / 3 + 1);
        let points = view.rounds(0).rounds;
        let fates = view.overview().fates;
        assert_eq!(points.iter().map(|point| point.asked).sum::<u64>(), fates.arrived + fates.missed);
        assert_eq!(points.iter().map(|point| point.arrived).sum::<u64>(), fates.arrived);
        let refused = view.overview().refusals.values().sum::<u64>();
        assert_eq!(points.iter().map(|point| point.refused).sum::<u64>(), refused);
        assert_eq!((points[0].from, points.last().unwrap().to), (1, rounds));
        assert!(points.windows(2).all(|two| two[0].to + 1 == two[1].from) && points.len() <= 1024);
        for row in view.nodes().nodes {
            let page = view.node(&row.id).unwrap();
            assert_eq!(page.history.iter().map(|point| point.drawn).sum::<u32>(), row.drawn);
            assert_eq!(page.history.iter().map(|point| point.staleness).max(), Some(page.staleness_max));
            assert!(page.history.len() <= 256);
        }
    }
}
