//! A report claims what was in force and what happened, and nothing else.
#![allow(clippy::unwrap_used)]

use evenhand_federation::{FederationConfig, Rules, StopRuleKind};
use evenhand_report::{
    LossSeries, NodeAnnotation, NodeColumn, ReportSource, ReportTile, RoundLog, RoundSummary, StopSummary,
    html,
};

const NODES: usize = 4;

fn config() -> FederationConfig {
    let mut config = FederationConfig::default();
    config.federation.policy = evenhand_federation::Policy::Paper;
    config.federation.nodes_min = NODES as u32;
    config.federation.rounds = 6;
    config.exploring.tested_nodes = 2;
    config.exploiting.k = 2;
    config.exploiting.temperature = 0.125;
    config
}

/// Two rounds of exploring, of which the second ends it with `verdict`, then one round a draw.
fn log(temperature: f64, verdict: StopSummary, draws: &[&[usize]]) -> RoundLog {
    let mut log = RoundLog::new((1..=NODES).map(|node| format!("meter-{node}")).collect());
    let standings = vec![0.4, 0.3, 0.2, 0.1];
    let round = |number: u32, drawn: &[usize]| RoundSummary {
        round: number,
        exploring: number <= 2,
        drawn: drawn.to_vec(),
        loss: 0.5,
        contributions: (number <= 2).then(|| standings.clone()),
        standings: standings.clone(),
        sampling_probabilities: if number <= 2 { vec![0.25; NODES] } else { standings.clone() },
        temperature,
        stop: (number == 2).then(|| verdict.clone()),
    };
    log.rounds.extend([round(1, &[0, 1, 2, 3]), round(2, &[0, 1, 2, 3])]);
    log.rounds.extend(draws.iter().zip(3..).map(|(drawn, number)| round(number, drawn)));
    log
}

fn met(p_value: f64, reason: &str) -> StopSummary {
    StopSummary { p_value: Some(p_value), stop: true, reason: reason.into() }
}

fn source(log: &RoundLog) -> ReportSource {
    ReportSource {
        node_noun: "barometers".into(),
        annotation: NodeAnnotation {
            symbol: "drift".into(),
            name: "drift of the sensor".into(),
            axis: "drift of the sensor (0: none)".into(),
            low: "steady".into(),
            high: "drifting".into(),
            low_on_top: "the steadiest on top".into(),
            values: (0..NODES).map(|node| node as f64).collect(),
        },
        losses: LossSeries {
            name: "forecast error".into(),
            meaning: "In hectopascal.".into(),
            comparable: true,
            values: log.rounds.iter().map(|_| vec![0.1, 0.2, 0.3, 0.4]).collect(),
        },
        columns: vec![NodeColumn { name: "height".into(), cells: vec!["12 m".into(); NODES] }],
        tiles: vec![ReportTile { name: "Energy".into(), value: "3 Wh".into(), note: "all nodes".into() }],
        settings: vec![("site".into(), "roof".into())],
        unfinished: None,
        command: ("To repeat this run".into(), "run --again".into()),
    }
}

/// The page's texts without markup, one an element.
fn texts(config: FederationConfig, log: &RoundLog) -> String {
    let rules = Rules::new(config).unwrap();
    let page = html(&rules, log, &source(log));
    let document = roxmltree::Document::parse(page.strip_prefix("<!doctype html>\n").unwrap()).unwrap();
    let texts = document.descendants().filter(|node| node.is_text()).filter_map(|node| node.text());
    texts.map(str::trim).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The value under a name of the settings.
fn setting(texts: &str, name: &str) -> Option<String> {
    let mut lines = texts.lines().skip_while(|line| *line != name);
    lines.nth(1).map(str::to_owned)
}

#[test]
fn the_papers_rule_is_shown_with_its_alpha_and_the_configured_temperature() {
    let log = log(0.125, met(0.75, "settled"), &[&[0, 1], &[2, 3]]);
    let texts = texts(config(), &log);
    assert_eq!(setting(&texts, "stop rule").as_deref(), Some("paper"));
    assert_eq!(setting(&texts, "stop rule: p has to reach α").as_deref(), Some("0.7"));
    assert_eq!(setting(&texts, "temperature β").as_deref(), Some("0.125"));
    assert!(texts.contains("p = 0.750 reached α = 0.7"), "{texts}");
    assert!(texts.contains("the temperature β = 0.125 decides how much better"), "{texts}");
}

#[test]
fn the_calibrated_rule_is_shown_with_its_level_and_precision_and_without_alpha() {
    let mut config = config();
    config.exploring.rule = StopRuleKind::Calibrated;
    config.exploring.level = 0.03;
    config.exploring.precision = 1.5;
    let log = log(0.125, met(0.2, "no drift, no trend, precise enough"), &[&[0, 1], &[2, 3]]);
    let texts = texts(config, &log);
    assert_eq!(setting(&texts, "stop rule").as_deref(), Some("calibrated"));
    assert_eq!(setting(&texts, "stop rule: level of its tests").as_deref(), Some("0.03"));
    assert_eq!(setting(&texts, "stop rule: precision of standings, in β").as_deref(), Some("1.5"));
    assert!(texts.contains("no drift, no trend, precise enough"), "why exploring ended: {texts}");
    assert!(texts.contains("level 0.03") && !texts.contains('α'), "{texts}");
}

#[test]
fn a_temperature_found_for_a_worst_staleness_is_the_one_of_the_rounds() {
    let mut config = config();
    config.exploiting.worst_staleness = 12.0;
    let wanted = "a worst expected staleness of 12 rounds";
    let shown = |temperature: f64, draws: &[&[usize]]| {
        let log = log(temperature, met(0.75, "settled"), draws);
        setting(&texts(config.clone(), &log), "temperature β").unwrap()
    };
    assert_eq!(shown(0.031_25, &[&[0, 1]]), format!("0.03125, found for {wanted}"));
    assert_eq!(shown(0.125, &[&[0, 1]]), format!("0.125 as configured, since {wanted} cannot be reached"));
    assert_eq!(shown(0.031_25, &[]), format!("not found yet; it will be chosen for {wanted}"));
}

#[test]
fn a_node_that_was_never_drawn_is_named_and_nobody_is_promised_odds() {
    let some = log(0.125, met(0.75, "settled"), &[&[0, 1], &[0, 2]]);
    let texts_of_some = texts(config(), &some);
    assert!(texts_of_some.contains("Never drawn in the 2 rounds of drawing: meter-4."), "{texts_of_some}");
    assert!(!texts_of_some.contains("at least once"), "{texts_of_some}");

    let all = log(0.125, met(0.75, "settled"), &[&[0, 1], &[2, 3]]);
    let texts_of_all = texts(config(), &all);
    assert!(texts_of_all.contains("Every node was drawn at least once in the 2 rounds of drawing."));

    let mut without = log(0.125, met(0.75, "settled"), &[&[0, 1], &[0, 2]]);
    without.rounds[3].sampling_probabilities = vec![0.5, 0.3, 0.2, 0.0];
    let texts_of_without = texts(config(), &without);
    assert!(texts_of_without.contains("1 of 4 nodes have no odds at all."), "{texts_of_without}");
    for page in [texts_of_some, texts_of_all, texts_of_without] {
        assert!(!page.contains("Nobody's odds are zero"));
    }
}

#[test]
fn how_exploring_ended_and_how_nodes_were_drawn_are_read_off_the_rounds() {
    let unmet = StopSummary { p_value: Some(0.4), stop: false, reason: "contributions still move".into() };
    let mut config = config();
    config.exploring.rounds_max = 2;
    let limited = texts(config.clone(), &log(0.125, unmet.clone(), &[&[0, 1]]));
    assert!(limited.contains("at the limit of 2 rounds, before the stop rule was met"), "{limited}");
    let exploring = texts(config.clone(), &log(0.125, unmet, &[]));
    assert!(exploring.contains("the last p = 0.400 is below α = 0.7"), "{exploring}");
    assert!(exploring.contains("nobody has been drawn yet"), "{exploring}");

    let settled = || met(0.75, "settled");
    let by_standing = texts(config.clone(), &log(0.125, settled(), &[&[0, 1], &[2]]));
    assert!(by_standing.contains("1 to 2 nodes a round received the latest model, drawn by their standing."));
    let mut alike = log(0.125, settled(), &[&[0, 1], &[2, 3]]);
    alike.rounds.iter_mut().for_each(|round| round.sampling_probabilities = vec![0.25; NODES]);
    let alike = texts(config.clone(), &alike);
    assert!(alike.contains("drawn with equal probabilities") && !alike.contains("by their standing"));
    assert!(alike.contains("All nodes have the same odds in the last draw."), "{alike}");
    let mut other = log(0.125, settled(), &[&[0, 1], &[2, 3]]);
    other.rounds[3].sampling_probabilities = vec![0.1, 0.2, 0.3, 0.4];
    assert!(texts(config, &other).contains("drawn by the strategy's own probabilities"));
}

#[test]
fn labels_of_the_caller_are_printed_as_they_are() {
    let log = log(0.125, met(0.75, "settled"), &[&[0, 1], &[2, 3]]);
    let texts = texts(config(), &log);
    for label in [
        "4 barometers learned one model together in 4 rounds.",
        "Colours, by drift of the sensor:",
        "Fairness: drift with waiting",
        "Equality: spread of forecast error",
        "In hectopascal.",
        "Energy",
        "3 Wh",
        "To repeat this run:",
        "run --again",
    ] {
        assert!(texts.contains(label), "{label} is not in {texts}");
    }
    assert_eq!(setting(&texts, "site").as_deref(), Some("roof"));
}

/// A run under the policy `continuous`: the phases of the paper have no place in it.
#[test]
fn a_continuous_run_is_told_without_the_papers_phases() {
    let mut config = FederationConfig::default();
    config.federation.nodes_min = NODES as u32;
    config.exploring.tested_nodes = 2;
    config.exploiting.k = 2;
    let mut log = log(0.125, met(0.75, "settled"), &[&[0, 1], &[2, 3]]);
    for round in &mut log.rounds {
        round.exploring = false;
    }
    let shown = texts(config.clone(), &log);
    for word in ["xplor", "xploit", "stop rule", "Stop rule", "ζ"] {
        assert!(!shown.contains(word), "{word}: {shown}");
    }
    assert!(shown.contains("Everybody who was present was measured in every round."), "{shown}");
    // Four nodes of which two are drawn: three times the wait under equal odds.
    assert!(shown.contains("promised to all: at most 6 rounds on average"), "{shown}");
    assert_eq!(setting(&shown, "policy").as_deref(), Some("continuous"));
    let beta = "0.125, the lowest at which nobody waits longer than 6 rounds on average";
    assert_eq!(setting(&shown, "temperature β").as_deref(), Some(beta));
    assert!(shown.contains("p = 0.750 reached α = 0.7"), "{shown}");
    // An empty one neither.
    log.rounds.clear();
    assert!(!texts(config, &log).contains("xplor"));
}
