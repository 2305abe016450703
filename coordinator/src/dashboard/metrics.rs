//! The metrics of the coordinator.

use evenhand_program::prometheus::MetricKind::{self, Counter, Gauge};
use evenhand_program::prometheus::MetricsText;
use evenhand_protocol::message::Phase;

use crate::view::{FederationView, NodeRow};

const PHASES: [Phase; 7] = [
    Phase::Enrolling,
    Phase::Exploring,
    Phase::Exploiting,
    Phase::Running,
    Phase::Paused,
    Phase::Finished,
    Phase::Failed,
];

/// All metrics; `subscribers` is the number of open event streams.
pub(super) fn text(view: &FederationView, subscribers: usize) -> String {
    let overview = view.overview();
    let mut metrics = MetricsText::new("evenhand_coordinator_");
    metrics.family("info", Gauge, "Federation and version.");
    metrics.sample("info", &[("federation", &overview.name), ("version", &overview.software)], 1);
    metrics.family("phase", Gauge, "1 for the phase the federation is in.");
    for phase in PHASES {
        let on = u8::from(phase == overview.phase);
        metrics.sample("phase", &[("phase", &phase.name())], on);
    }
    metrics.single(
        "broker_connected",
        Gauge,
        "1 while the broker is connected.",
        u8::from(overview.connected),
    );
    metrics.single("round", Gauge, "The open round, or the last one.", overview.round);
    metrics.single("rounds_planned", Gauge, "Rounds after which it is finished.", overview.rounds);
    metrics.family("nodes", Gauge, "Nodes by state.");
    for (state, count) in [
        ("enrolled", overview.nodes.enrolled),
        ("present", overview.nodes.present),
        ("removed", overview.nodes.removed),
    ] {
        metrics.sample("nodes", &[("state", &state)], count);
    }
    let rule = &overview.stop_rule;
    metrics.optional_gauge("p_value", "The stop rule's last p.", rule.p_value);
    metrics.single("p_value_threshold", Gauge, "The value that p has to reach.", rule.threshold);
    let drift = overview.drift.as_ref().and_then(|drift| drift.p_value);
    metrics.optional_gauge("drift_p_value", "p of the last drift test.", drift);
    metrics.optional_gauge("loss", "Mean loss of the model on the last round's batches.", overview.loss);
    let skill = overview.skill.map(|skill| skill.median);
    metrics.optional_gauge("skill", "Median skill of the nodes' forecasts over four weeks.", skill);
    metrics.single("temperature", Gauge, "The equalizing coefficient beta.", overview.draws.temperature);
    metrics.family("responses_total", Counter, "Nodes asked, by response.");
    let responses = overview.responses;
    for (response, count) in [
        ("arrived", responses.arrived),
        ("declined", responses.declined),
        ("refused", responses.refused),
        ("disconnected", responses.disconnected),
        ("missed", responses.missed),
    ] {
        metrics.sample("responses_total", &[("response", &response)], count);
    }
    metrics.family("refusals_total", Counter, "Messages refused, by reason.");
    for (refusal, count) in &overview.refusals {
        metrics.sample("refusals_total", &[("reason", &refusal.name())], count);
    }
    metrics.family("payload_bytes_total", Counter, "Payload bytes; up is from the nodes, down is to them.");
    metrics.sample("payload_bytes_total", &[("direction", &"up")], overview.traffic.bytes_up);
    metrics.sample("payload_bytes_total", &[("direction", &"down")], overview.traffic.bytes_down);
    if !overview.certificates.is_empty() {
        metrics.family("certificate_expiry_seconds", Gauge, "End of the coordinator's certificates.");
        for (name, expires_ms) in &overview.certificates {
            metrics.sample("certificate_expiry_seconds", &[("use", name)], *expires_ms as f64 / 1000.0);
        }
    }
    metrics.single(
        "round_seconds_total",
        Counter,
        "Seconds spent on evaluating, merging and saving rounds.",
        overview.seconds,
    );
    metrics.single("dashboard_subscribers", Gauge, "Subscribers to events.", subscribers);
    of_nodes(&mut metrics, &view.nodes().nodes);
    metrics.into_text()
}

fn of_nodes(metrics: &mut MetricsText, nodes: &[&NodeRow]) {
    type Value = fn(&NodeRow) -> f64;
    let families: [(&str, MetricKind, &str, Value); 6] = [
        ("node_present", Gauge, "1 while the node is online.", |n| f64::from(u8::from(n.present))),
        ("node_standing", Gauge, "Mean contribution psi.", |n| n.standing),
        ("node_standing_error", Gauge, "Standard error of psi.", |n| n.standing_error),
        ("node_sampling_probability", Gauge, "Odds of one draw.", |n| n.probability),
        ("node_staleness_rounds", Gauge, "Rounds since it received the model.", |n| f64::from(n.staleness)),
        ("node_draws_total", Counter, "How often it received the model.", |n| f64::from(n.drawn)),
    ];
    let skilled: Vec<(&NodeRow, f64)> = nodes.iter().filter_map(|node| Some((*node, node.skill?))).collect();
    metrics.family(
        "node_skill",
        Gauge,
        "Skill of its forecasts over four weeks: 1 - MAE / MAE of the best naive one.",
    );
    for (node, skill) in skilled {
        metrics.sample("node_skill", &[("node", &node.id)], skill);
    }
    for (name, kind, help, value) in families {
        metrics.family(name, kind, help);
        for node in nodes {
            metrics.sample(name, &[("node", &node.id)], value(node));
        }
    }
}
