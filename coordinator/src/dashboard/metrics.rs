//! The view as Prometheus reads it: text format 0.0.4.

use std::fmt::{Display, Write};

use evenhand_protocol::message::Phase;

use crate::view::{NodeRow, View};

pub(super) const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

const PHASES: [Phase; 6] =
    [Phase::Enrolling, Phase::Exploring, Phase::Exploiting, Phase::Paused, Phase::Finished, Phase::Failed];

/// All metrics; `listeners` is the number of pages that listen to events.
pub(super) fn text(view: &View, listeners: usize) -> String {
    let overview = view.overview();
    let mut page = Page::default();
    page.family("evenhand_info", "gauge", "What runs here.");
    page.sample("evenhand_info", &[("federation", &overview.name), ("version", &overview.software)], 1);
    page.family("evenhand_phase", "gauge", "1 for the phase the federation is in.");
    for phase in PHASES {
        let on = u8::from(phase == overview.phase);
        page.sample("evenhand_phase", &[("phase", &phase.name())], on);
    }
    page.one(
        "evenhand_broker_connected",
        "gauge",
        "Whether the broker is there.",
        u8::from(overview.connected),
    );
    page.one("evenhand_round", "gauge", "The open round, or the last one.", overview.round);
    page.one("evenhand_rounds_planned", "gauge", "Rounds after which it is finished.", overview.rounds);
    page.family("evenhand_nodes", "gauge", "Nodes by state.");
    for (state, count) in [
        ("enrolled", overview.nodes.enrolled),
        ("present", overview.nodes.present),
        ("removed", overview.nodes.removed),
    ] {
        page.sample("evenhand_nodes", &[("state", &state)], count);
    }
    let rule = &overview.stop_rule;
    page.maybe("evenhand_p_value", "The stop rule's last p.", rule.p_value);
    page.one("evenhand_p_value_threshold", "gauge", "What p has to reach.", rule.threshold);
    let drift = overview.drift.as_ref().and_then(|drift| drift.p_value);
    page.maybe("evenhand_drift_p_value", "p of the last test whether standings still hold.", drift);
    page.maybe("evenhand_loss", "Mean loss of the model on the last round's batches.", overview.loss);
    page.one("evenhand_temperature", "gauge", "The equalizing coefficient beta.", overview.draws.temperature);
    page.family("evenhand_answers_total", "counter", "Nodes asked, by what became of it.");
    let fates = overview.fates;
    for (fate, count) in [
        ("arrived", fates.arrived),
        ("declined", fates.declined),
        ("refused", fates.refused),
        ("died", fates.died),
        ("missed", fates.missed),
    ] {
        page.sample("evenhand_answers_total", &[("fate", &fate)], count);
    }
    page.family("evenhand_refusals_total", "counter", "Messages refused, by reason.");
    for (refusal, count) in &overview.refusals {
        page.sample("evenhand_refusals_total", &[("reason", &refusal.name())], count);
    }
    page.family("evenhand_payload_bytes_total", "counter", "Payload bytes of the coordinator's link.");
    page.sample("evenhand_payload_bytes_total", &[("direction", &"up")], overview.traffic.bytes_up);
    page.sample("evenhand_payload_bytes_total", &[("direction", &"down")], overview.traffic.bytes_down);
    page.one(
        "evenhand_round_seconds_total",
        "counter",
        "Seconds spent on evaluating, merging and saving rounds.",
        overview.seconds,
    );
    page.one("evenhand_dashboard_listeners", "gauge", "Pages that listen to events.", listeners);
    of_nodes(&mut page, &view.nodes().nodes);
    page.text
}

fn of_nodes(page: &mut Page, nodes: &[&NodeRow]) {
    type Value = fn(&NodeRow) -> f64;
    let families: [(&str, &str, &str, Value); 6] = [
        ("evenhand_node_present", "gauge", "Whether the node is there.", |n| f64::from(u8::from(n.present))),
        ("evenhand_node_standing", "gauge", "Mean contribution psi.", |n| n.standing),
        ("evenhand_node_standing_error", "gauge", "Standard error of psi.", |n| n.standing_error),
        ("evenhand_node_sampling_probability", "gauge", "Odds of one draw.", |n| n.probability),
        ("evenhand_node_staleness_rounds", "gauge", "Rounds since it received the model.", |n| {
            f64::from(n.staleness)
        }),
        ("evenhand_node_draws_total", "counter", "How often it received the model.", |n| f64::from(n.drawn)),
    ];
    for (name, kind, help, value) in families {
        page.family(name, kind, help);
        for node in nodes {
            page.sample(name, &[("node", &node.id)], value(node));
        }
    }
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.put(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// Label values are names and words: nothing in them needs escaping.
    fn sample(&mut self, name: &str, labels: &[(&str, &dyn Display)], value: impl Display) {
        self.put(format_args!("{name}{{"));
        for (index, (label, text)) in labels.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            self.put(format_args!("{comma}{label}=\"{text}\""));
        }
        self.put(format_args!("}} {value}\n"));
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.put(format_args!("{name} {value}\n"));
    }

    /// Nothing at all while nothing is known: a made-up value would be drawn and alarmed on.
    fn maybe(&mut self, name: &str, help: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.one(name, "gauge", help, value);
        }
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        self.text.write_fmt(text).expect("a String takes any text");
    }
}
