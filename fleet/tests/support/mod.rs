//! Invented runs, for their table and report.
#![allow(dead_code, clippy::unwrap_used)]

use evenhand_federation::{FederationConfig, Rules};
use evenhand_fleet::sim::online::OnlineScore;
use evenhand_fleet::sim::{RecordedRun, RunCost, RunDescription, RunEnd, SimulatedNode};
use evenhand_report::{RoundLog, RoundSummary, StopSummary};

fn description(nodes: usize, rounds: u32, k: usize) -> RunDescription {
    let mut config = FederationConfig::default();
    config.federation.policy = evenhand_federation::Policy::Paper;
    config.federation.nodes_min = nodes as u32;
    config.federation.rounds = rounds;
    config.federation.seed = 7;
    config.exploring.window = 8;
    config.exploring.tested_nodes = nodes.min(4) as u32;
    config.exploiting.k = k as u32;
    config.exploiting.temperature = 0.05;
    RunDescription {
        rules: Rules::new(config).unwrap(),
        strategy: "evenhand".into(),
        transport: "memory".into(),
        command: "evenhand-fleet demo --seed 7".into(),
    }
}

fn verdict(p_value: f64, stop: bool) -> StopSummary {
    StopSummary { p_value: Some(p_value), stop, reason: if stop { "settled" } else { "moving" }.into() }
}

/// Three nodes, two rounds together, then two in which the noisiest node waits.
pub(crate) fn small() -> RecordedRun {
    small_of(["a", "b", "c"])
}

/// The same, with nodes of these names.
pub(crate) fn small_of(names: [&str; 3]) -> RecordedRun {
    let mut log = RoundLog::new(names.map(str::to_owned).to_vec());
    let mut online = Vec::new();
    let mut add = |round: u32, drawn: &[usize], stop: Option<StopSummary>, losses: [f64; 3]| {
        log.rounds.push(RoundSummary {
            round,
            exploring: round <= 2,
            drawn: drawn.to_vec(),
            loss: 0.5,
            contributions: (round <= 2).then(|| vec![0.5, 0.3, 0.2]),
            standings: vec![0.5, 0.3, 0.2],
            sampling_probabilities: vec![0.5, 0.3, 0.2],
            temperature: 0.05,
            stop,
        });
        let score = |loss| OnlineScore { loss, mape: loss, accuracy: f64::NAN };
        online.push(losses.map(score).to_vec());
    };
    add(1, &[0, 1, 2], None, [1.0; 3]);
    add(2, &[0, 1, 2], Some(verdict(0.75, true)), [0.5; 3]);
    add(3, &[0, 1], None, [0.25, 0.25, 0.5]);
    add(4, &[0], None, [0.25, 0.25, 0.5]);
    RecordedRun {
        description: description(3, 4, 2),
        nodes: (names.iter().zip([0.0, 0.4, 0.8]))
            .map(|(name, zeta)| SimulatedNode { id: (*name).into(), zeta })
            .collect(),
        log,
        online,
        watched: None,
        skills: vec![Some(0.125), Some(-0.0025), None],
        ended: RunEnd::Complete,
        cost: RunCost {
            bytes_up: 1_234,
            bytes_down: 2_500_000,
            seconds_training: 1.5,
            seconds_fairness: 0.25,
        },
    }
}

/// `nodes` households whose standing falls with ζ, drawn round after round by `draw`.
pub(crate) fn drawn_by(nodes: usize, rounds: u32, mut draw: impl FnMut(u32) -> Vec<usize>) -> RecordedRun {
    let explored = rounds / 4;
    let zeta = |node: usize| 0.9 * node as f64 / (nodes - 1) as f64;
    let names: Vec<String> = (0..nodes).map(|node| format!("home-{:02}", node + 1)).collect();
    let mut log = RoundLog::new(names.clone());
    let mut online = Vec::new();
    let mut held = vec![0; nodes];
    for round in 1..=rounds {
        let exploring = round <= explored;
        let drawn = if exploring { (0..nodes).collect() } else { draw(round) };
        drawn.iter().for_each(|&node| held[node] = round);
        let wobble = |node: usize| 0.1 * f64::from((node as u32 * 7919 + round * 104_729) % 97) / 97.0;
        let standings: Vec<f64> =
            (0..nodes).map(|node| (1.5 - zeta(node) + wobble(node)) / nodes as f64).collect();
        log.rounds.push(RoundSummary {
            round,
            exploring,
            drawn,
            loss: 1.0 / f64::from(round),
            contributions: exploring.then(|| standings.clone()),
            sampling_probabilities: vec![1.0 / nodes as f64; nodes],
            standings,
            temperature: 0.05,
            stop: (exploring && round > 2)
                .then(|| verdict(0.75 * f64::from(round) / f64::from(explored), round == explored)),
        });
        let score = |&version: &u32| OnlineScore {
            loss: 0.1 + 1.0 / f64::from(version),
            mape: 0.05 + 0.5 / f64::from(version),
            accuracy: f64::NAN,
        };
        online.push(held.iter().map(score).collect());
    }
    RecordedRun {
        description: description(nodes, rounds, nodes.div_ceil(3)),
        nodes: names.into_iter().enumerate().map(|(n, id)| SimulatedNode { id, zeta: zeta(n) }).collect(),
        log,
        online,
        watched: None,
        skills: vec![None; nodes],
        ended: RunEnd::Complete,
        cost: RunCost::default(),
    }
}
