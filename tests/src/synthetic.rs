//! A federation that never was: records of any number of nodes and rounds, for what only looks at them.

use std::collections::BTreeMap;

use evenhand_coordinator::view::FederationView;
use evenhand_fairness::{StopReason, StopVerdict};
use evenhand_federation::{
    ClosedRound, Federation, FederationConfig, InitialModel, MeasureResponse, NodeResponse, NodeRound, Rules,
    Tick,
};
use evenhand_link::Traffic;
use evenhand_protocol::identity::{Digest, FederationId, NodeId};
use evenhand_protocol::message::{Phase, Refusal, SkillPermille, Why};

/// A generator that needs no crate: the multiplicative congruential one of Lehmer.
struct Lehmer(u64);

impl Lehmer {
    fn unit(&mut self) -> f64 {
        self.0 = self.0 * 48_271 % 0x7fff_ffff;
        self.0 as f64 / f64::from(0x7fff_ffff)
    }

    /// About normal.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

/// A federation with rules for so many nodes and rounds, and nobody in it.
pub fn federation(nodes: u32, rounds: u32) -> Federation {
    let mut settings = FederationConfig::default();
    settings.federation.policy = evenhand_federation::Policy::Paper;
    settings.federation.name = FederationId::new("synthetic").unwrap();
    settings.federation.nodes_min = nodes;
    settings.federation.rounds = rounds;
    settings.exploring.tested_nodes = nodes.min(10);
    settings.exploiting.k = (nodes / 3).max(1);
    settings.exploiting.drift_test_every = 5;
    let initial_model = InitialModel {
        graph: Digest::of(b"graph"),
        onnx: vec![7; 100].into(),
        weights: vec![0.5; 1921].into(),
    };
    Federation::new(Rules::new(settings).unwrap(), initial_model)
}

/// What one node is like.
struct SyntheticNode {
    id: NodeId,
    worth: f64,
    sum: f64,
    squares: f64,
    measured: u32,
    drawn: u32,
    last: Option<u32>,
}

/// What is shown of `nodes` nodes after `rounds` rounds, of which the first `exploring` measured contributions.
pub fn view(nodes: u32, rounds: u32, exploring: u32) -> FederationView {
    let mut view = FederationView::new(&federation(nodes, rounds + rounds / 4));
    let mut rng = Lehmer(20_261_116);
    let mut all: Vec<SyntheticNode> = (0..nodes)
        .map(|i| SyntheticNode {
            id: NodeId::new(&format!("meter-{:04}", i + 1)).unwrap(),
            worth: (0.4 + rng.unit()) / f64::from(nodes),
            sum: 0.0,
            squares: 0.0,
            measured: 0,
            drawn: 0,
            last: None,
        })
        .collect();
    let traffic = |round: u32| Traffic {
        bytes_up: u64::from(round.min(exploring)) * u64::from(nodes) * 7_800
            + u64::from(round.saturating_sub(exploring)) * u64::from(nodes) * 2_600,
        bytes_down: u64::from(round) * u64::from(nodes) * 2_500,
    };
    for round in 1..=rounds {
        let record = record(&mut all, round, exploring, &mut rng);
        view.close(&record, 0.004, traffic(round));
    }
    view
}

fn record(all: &mut [SyntheticNode], round: u32, exploring: u32, rng: &mut Lehmer) -> ClosedRound {
    let count = all.len() as f64;
    let measuring = round <= exploring;
    let mean = |node: &SyntheticNode| node.sum / f64::from(node.measured.max(1));
    let odds: Vec<f64> = all.iter().map(|node| (mean(node) * count * 1.4).exp()).collect();
    let total: f64 = odds.iter().sum();
    let mut nodes = Vec::with_capacity(all.len());
    let loss = 0.12 + 0.7 * (-f64::from(round) / 60.0).exp() + 0.01 * rng.normal();
    for (node, odds) in all.iter_mut().zip(&odds) {
        let away = rng.unit() < 0.03;
        let probability = if measuring { 1.0 / count } else { odds / total };
        let asked = !away && (measuring || rng.unit() < 1.0 - (1.0 - probability).powf(count / 3.0));
        let contribution =
            measuring.then(|| if asked { node.worth + 0.3 / count * rng.normal() } else { 0.0 });
        if let Some(value) = contribution {
            node.measured += 1;
            node.sum += value;
            node.squares += value * value;
        }
        if asked {
            node.drawn += 1;
            node.last = Some(round);
        }
        let n = f64::from(node.measured.max(1));
        let variance = (node.squares / n - mean(node).powi(2)).max(0.0);
        let missed = asked && rng.unit() < 0.01;
        let refusals = if asked && rng.unit() < 0.002 {
            BTreeMap::from([(if missed { Refusal::Late } else { Refusal::Norm }, 1)])
        } else {
            BTreeMap::new()
        };
        nodes.push(NodeRound {
            measured: match away {
                true => MeasureResponse::NotAsked,
                false => MeasureResponse::Measured {
                    samples: 48,
                    skill: Some(SkillPermille::of(0.1 * mean(node))),
                },
            },
            node: node.id.clone(),
            why: match (away, measuring, asked) {
                (true, _, _) => Why::Absent,
                (_, true, _) => Why::Exploring,
                (_, _, true) => Why::Drawn,
                _ => Why::NotDrawn,
            },
            response: match (asked, missed) {
                (false, _) => NodeResponse::NotAsked,
                (_, true) => NodeResponse::Missed,
                _ => NodeResponse::Arrived {
                    samples: 48,
                    weight: 1.0 / count,
                    loss: (loss * (1.0 + 0.2 * rng.unit())) as f32,
                    online: None,
                    norm: 1.5,
                },
            },
            has_twin: false,
            contribution,
            contribution_error: contribution.map(|_| 0.01 / count),
            standing: mean(node),
            standing_error: (variance / n).sqrt(),
            sampling_probability: probability,
            staleness: round - node.last.unwrap_or(0),
            last_drawn: node.last,
            drawn: node.drawn,
            removed: None,
            refusals,
        });
    }
    let settled = f64::from(round) / f64::from(exploring);
    let p_value = match measuring {
        true => (round > 16).then(|| (settled.powi(3) * 0.75 + 0.06 * rng.normal()).clamp(0.01, 0.99)),
        false => Some(0.2 + 0.7 * rng.unit()),
    };
    ClosedRound {
        intervention: None,
        round,
        phase: if measuring { Phase::Exploring } else { Phase::Exploiting },
        opened: Tick(1_790_000_000_000 + u64::from(round) * 60_000),
        closed: Tick(1_790_000_004_000 + u64::from(round) * 60_000),
        weights_before: Digest::of(&(round - 1).to_le_bytes()),
        weights_after: Digest::of(&round.to_le_bytes()),
        node_models_after: None,
        temperature: 0.7 / count,
        loss: Some(loss),
        unmeasured: None,
        verdict: (measuring || round.is_multiple_of(10)).then(|| StopVerdict {
            tested: Vec::new(),
            t2: None,
            f: None,
            p_value,
            trend_p_value: None,
            half_width: None,
            stop: round == exploring,
            reason: match p_value {
                Some(p_value) if measuring => StopReason::Moving { p_value, needed: 0.7 },
                Some(p_value) => StopReason::Holds { p_value },
                None => StopReason::TooFewRounds { rounds: round as usize, needed: 16 },
            },
        }),
        untested: Vec::new(),
        nodes,
        unknown_refusals: BTreeMap::from([(Refusal::Unknown, u32::from(round.is_multiple_of(40)))]),
    }
}
