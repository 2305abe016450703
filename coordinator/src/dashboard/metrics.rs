//! The view as Prometheus reads it: text format 0.0.4.

use evenhand_program::prometheus::MetricKind::{self, Counter, Gauge};
use evenhand_program::prometheus::MetricsText;
use evenhand_protocol::message::Phase;

use crate::view::{NodeRow, View};

const PHASES: [Phase; 6] =
    [Phase::Enrolling, Phase::Exploring, Phase::Exploiting, Phase::Paused, Phase::Finished, Phase::Failed];

/// All metrics; `listeners` is the number of pages that listen to events.
pub(super) fn text(view: &View, listeners: usize) -> String {
    let overview = view.overview();
    let mut page = MetricsText::new("evenhand_coordinator_");
    page.family("info", Gauge, "What runs here.");
    page.sample("info", &[("federation", &overview.name), ("version", &overview.software)], 1);
    page.family("phase", Gauge, "1 for the phase the federation is in.");
    for phase in PHASES {
        let on = u8::from(phase == overview.phase);
        page.sample("phase", &[("phase", &phase.name())], on);
    }
    page.single("broker_connected", Gauge, "Whether the broker is there.", u8::from(overview.connected));
    page.single("round", Gauge, "The open round, or the last one.", overview.round);
    page.single("rounds_planned", Gauge, "Rounds after which it is finished.", overview.rounds);
    page.family("nodes", Gauge, "Nodes by state.");
    for (state, count) in [
        ("enrolled", overview.nodes.enrolled),
        ("present", overview.nodes.present),
        ("removed", overview.nodes.removed),
    ] {
        page.sample("nodes", &[("state", &state)], count);
    }
    let rule = &overview.stop_rule;
    page.optional_gauge("p_value", "The stop rule's last p.", rule.p_value);
    page.single("p_value_threshold", Gauge, "What p has to reach.", rule.threshold);
    let drift = overview.drift.as_ref().and_then(|drift| drift.p_value);
    page.optional_gauge("drift_p_value", "p of the last test whether standings still hold.", drift);
    page.optional_gauge("loss", "Mean loss of the model on the last round's batches.", overview.loss);
    page.single("temperature", Gauge, "The equalizing coefficient beta.", overview.draws.temperature);
    page.family("answers_total", Counter, "Nodes asked, by what became of it.");
    let fates = overview.fates;
    for (fate, count) in [
        ("arrived", fates.arrived),
        ("declined", fates.declined),
        ("refused", fates.refused),
        ("died", fates.died),
        ("missed", fates.missed),
    ] {
        page.sample("answers_total", &[("fate", &fate)], count);
    }
    page.family("refusals_total", Counter, "Messages refused, by reason.");
    for (refusal, count) in &overview.refusals {
        page.sample("refusals_total", &[("reason", &refusal.name())], count);
    }
    page.family("payload_bytes_total", Counter, "Payload bytes of the coordinator's link.");
    page.sample("payload_bytes_total", &[("direction", &"up")], overview.traffic.bytes_up);
    page.sample("payload_bytes_total", &[("direction", &"down")], overview.traffic.bytes_down);
    page.single(
        "round_seconds_total",
        Counter,
        "Seconds spent on evaluating, merging and saving rounds.",
        overview.seconds,
    );
    page.single("dashboard_listeners", Gauge, "Pages that listen to events.", listeners);
    of_nodes(&mut page, &view.nodes().nodes);
    page.into_text()
}

fn of_nodes(page: &mut MetricsText, nodes: &[&NodeRow]) {
    type Value = fn(&NodeRow) -> f64;
    let families: [(&str, MetricKind, &str, Value); 6] = [
        ("node_present", Gauge, "Whether the node is there.", |n| f64::from(u8::from(n.present))),
        ("node_standing", Gauge, "Mean contribution psi.", |n| n.standing),
        ("node_standing_error", Gauge, "Standard error of psi.", |n| n.standing_error),
        ("node_sampling_probability", Gauge, "Odds of one draw.", |n| n.probability),
        ("node_staleness_rounds", Gauge, "Rounds since it received the model.", |n| f64::from(n.staleness)),
        ("node_draws_total", Counter, "How often it received the model.", |n| f64::from(n.drawn)),
    ];
    for (name, kind, help, value) in families {
        page.family(name, kind, help);
        for node in nodes {
            page.sample(name, &[("node", &node.id)], value(node));
        }
    }
}
