//! Invented runs, for their table and report.
#![allow(dead_code)]

use evenhand_fleet::outcome::{Cost, Ended, Member, Outcome, Round, Settings, Stage, Teller};

pub(crate) fn settings(rounds: u32, k: usize) -> Settings {
    Settings {
        rounds,
        seed: 7,
        transport: "memory".into(),
        codec: "f32".into(),
        strategy: "evenhand".into(),
        sampler: "credit".into(),
        temperature: 0.05,
        window: 8,
        strictness: 0.7,
        watched: 4,
        k,
        command: "evenhand-fleet demo --seed 7".into(),
    }
}

/// Three nodes, two rounds together, then two in which the noisiest node waits.
pub(crate) fn small() -> Outcome {
    let members = [0.0, 0.4, 0.8].iter().zip(["a", "b", "c"]);
    let round = |round: u32, stage, drawn: &[usize], p_value, online: [f64; 3]| Round {
        round,
        stage,
        drawn: drawn.to_vec(),
        loss: 0.5,
        contributions: (stage == Stage::Exploring).then(|| vec![0.5, 0.3, 0.2]),
        standings: vec![0.5, 0.3, 0.2],
        sampling_probabilities: vec![0.5, 0.3, 0.2],
        p_value,
        online_losses: online.to_vec(),
        online_mapes: online.to_vec(),
        online_accuracies: vec![f64::NAN; online.len()],
    };
    Outcome {
        settings: settings(4, 2),
        members: members.map(|(&zeta, id)| Member { id: id.into(), zeta }).collect(),
        rounds: vec![
            round(1, Stage::Exploring, &[0, 1, 2], None, [1.0; 3]),
            round(2, Stage::Exploring, &[0, 1, 2], Some(0.75), [0.5; 3]),
            round(3, Stage::Exploiting, &[0, 1], None, [0.25, 0.25, 0.5]),
            round(4, Stage::Exploiting, &[0], None, [0.25, 0.25, 0.5]),
        ],
        ended: Ended::Complete,
        cost: Cost { bytes_up: 1_234, bytes_down: 2_500_000, seconds_training: 1.5, seconds_fairness: 0.25 },
        teller: Teller::Fleet,
    }
}

/// `nodes` households whose standing falls with ζ, drawn round after round by `draw`.
pub(crate) fn drawn_by(nodes: usize, rounds: u32, mut draw: impl FnMut(u32) -> Vec<usize>) -> Outcome {
    let explored = rounds / 4;
    let zeta = |node: usize| 0.9 * node as f64 / (nodes - 1) as f64;
    let mut held = vec![0; nodes];
    let rounds_seen = (1..=rounds)
        .map(|round| {
            let stage = if round <= explored { Stage::Exploring } else { Stage::Exploiting };
            let drawn = if stage == Stage::Exploring { (0..nodes).collect() } else { draw(round) };
            drawn.iter().for_each(|&node| held[node] = round);
            let wobble = |node: usize| 0.1 * f64::from((node as u32 * 7919 + round * 104_729) % 97) / 97.0;
            let standings: Vec<f64> =
                (0..nodes).map(|node| (1.5 - zeta(node) + wobble(node)) / nodes as f64).collect();
            Round {
                round,
                stage,
                drawn,
                loss: 1.0 / f64::from(round),
                contributions: (stage == Stage::Exploring).then(|| standings.clone()),
                sampling_probabilities: vec![1.0 / nodes as f64; nodes],
                standings,
                p_value: (round <= explored && round > 2)
                    .then(|| 0.75 * f64::from(round) / f64::from(explored)),
                online_losses: held.iter().map(|&version| 0.1 + 1.0 / f64::from(version)).collect(),
                online_mapes: held.iter().map(|&version| 0.05 + 0.5 / f64::from(version)).collect(),
                online_accuracies: vec![f64::NAN; held.len()],
            }
        })
        .collect();
    Outcome {
        settings: settings(rounds, nodes.div_ceil(3)),
        members: (0..nodes)
            .map(|node| Member { id: format!("home-{:02}", node + 1), zeta: zeta(node) })
            .collect(),
        rounds: rounds_seen,
        ended: Ended::Complete,
        cost: Cost::default(),
        teller: Teller::Fleet,
    }
}
