//! A run as its coordinator knows it, from the round log.

use evenhand_protocol::message::Phase;

use super::outcome::{Cost, Ended, Member, Outcome, Round, Settings, Stage, Teller};
use evenhand_federation::{ClosedRound, Federation, NodeResponse, NodeRound};

impl Outcome {
    /// Of a federation and its rounds. Nodes are ordered by how far their standing falls short of the best, from 0 to 1.
    pub fn told_by_coordinator(federation: &Federation, records: &[ClosedRound], command: String) -> Self {
        let nodes = records.last().map_or(0, |last| last.nodes.len());
        let standings: Vec<f64> =
            records.last().map_or(Vec::new(), |last| last.nodes.iter().map(|node| node.standing).collect());
        let best = standings.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let worst = standings.iter().copied().fold(f64::INFINITY, f64::min);
        let width = (best - worst).max(f64::MIN_POSITIVE);
        let named = records.last().into_iter().flat_map(|last| &last.nodes);
        let members = named
            .map(|node| Member { id: node.node.to_string(), zeta: (best - node.standing) / width })
            .collect();
        let mut losses = first_losses(records, nodes);
        let rounds = records.iter().map(|record| round(record, &mut losses)).collect();
        let over = federation.phase() == Phase::Finished
            && federation.round() >= federation.rules().federation.rounds;
        Self {
            settings: settings(federation, command),
            members,
            rounds,
            ended: if over { Ended::Complete } else { Ended::Interrupted },
            cost: Cost::default(),
            teller: Teller::Coordinator,
        }
    }
}

fn settings(federation: &Federation, command: String) -> Settings {
    let rules = federation.rules();
    Settings {
        rounds: rules.federation.rounds,
        seed: rules.federation.seed,
        transport: "mqtt".into(),
        codec: rules.training.codec.to_string(),
        strategy: rules.federation.strategy.name().into(),
        sampler: rules.exploiting.sampler.name().into(),
        temperature: rules.exploiting.temperature,
        window: rules.exploring.window as usize,
        strictness: rules.exploring.strictness,
        watched: rules.exploring.watched as usize,
        k: rules.exploiting.k as usize,
        command,
    }
}

/// What a node said of its loss in a round.
fn reported(node: &NodeRound) -> Option<f64> {
    match node.fate {
        NodeResponse::Arrived { loss, online, .. } => Some(online.map_or(loss, |online| online.loss).into()),
        _ => None,
    }
}

/// The first loss each node reported: what stands for the rounds before.
fn first_losses(records: &[ClosedRound], nodes: usize) -> Vec<f64> {
    let mut first = vec![None; nodes];
    for record in records {
        for (first, node) in first.iter_mut().zip(&record.nodes) {
            *first = first.or_else(|| reported(node));
        }
    }
    let known: Vec<f64> = first.iter().flatten().copied().collect();
    let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
    first.into_iter().map(|loss| loss.unwrap_or(mean)).collect()
}

/// A round; nodes that had not joined yet have nothing, and their first loss.
fn round(record: &ClosedRound, losses: &mut [f64]) -> Round {
    for (loss, node) in losses.iter_mut().zip(&record.nodes) {
        *loss = reported(node).unwrap_or(*loss);
    }
    let of_all = |value: fn(&NodeRound) -> f64| {
        let mut values: Vec<f64> = record.nodes.iter().map(value).collect();
        values.resize(losses.len(), 0.0);
        values
    };
    let asked = record.nodes.iter().enumerate().filter(|(_, node)| node.was_asked());
    let exploring = record.phase == Phase::Exploring;
    Round {
        round: record.round,
        stage: if exploring { Stage::Exploring } else { Stage::Exploiting },
        drawn: asked.map(|(column, _)| column).collect(),
        loss: record.loss.unwrap_or(f64::NAN),
        contributions: exploring.then(|| of_all(|node| node.contribution.unwrap_or(0.0))),
        standings: of_all(|node| node.standing),
        sampling_probabilities: of_all(|node| node.sampling_probability),
        p_value: record.verdict.as_ref().filter(|_| exploring).and_then(|verdict| verdict.p_value),
        online_losses: losses.to_vec(),
        online_mapes: vec![f64::NAN; losses.len()],
        online_accuracies: vec![f64::NAN; losses.len()],
    }
}
