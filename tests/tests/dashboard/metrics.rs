//! The metrics, line by line.

use std::collections::BTreeMap;

use evenhand_tests::http::get;
use evenhand_tests::synthetic;
use tokio::task::spawn_blocking;

use super::served::{is, options, served};

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
        assert_eq!(samples["evenhand_coordinator_round"], federation["round"].as_f64().unwrap());
        assert_eq!(samples["evenhand_coordinator_phase{phase=\"exploiting\"}"], 1.0);
        assert_eq!(samples["evenhand_coordinator_phase{phase=\"exploring\"}"], 0.0);
        assert!(is(&federation["stop_rule"]["p_value"], samples["evenhand_coordinator_p_value"]));
        assert_eq!(
            samples["evenhand_coordinator_responses_total{response=\"arrived\"}"],
            federation["responses"]["arrived"].as_f64().unwrap()
        );
        for node in get(address, "/api/v1/nodes").json()["nodes"].as_array().unwrap() {
            let name =
                format!("evenhand_coordinator_node_standing{{node=\"{}\"}}", node["id"].as_str().unwrap());
            assert!(is(&node["standing"], samples[&name]));
        }
    })
    .await
    .unwrap();
}
