//! A run as its round log shows it, without anything measured elsewhere.

use evenhand_federation::{ClosedRound, MeasureResponse, NodeResponse, NodeRound};

use crate::source::{LossSeries, NodeAnnotation, NodeColumn, ReportSource};

impl ReportSource {
    /// Nodes ordered by how far their standing falls short of the best, from 0 to 1; losses as nodes report them.
    pub fn from_log(rounds: &[ClosedRound], complete: bool, command: String) -> Self {
        Self {
            node_noun: "nodes".into(),
            annotation: shortfall(rounds),
            losses: reported_losses(rounds),
            columns: reported_skills(rounds).into_iter().collect(),
            tiles: Vec::new(),
            settings: Vec::new(),
            unfinished: (!complete).then(|| "Under way".into()),
            command: ("To make this report again".into(), command),
        }
    }
}

fn shortfall(rounds: &[ClosedRound]) -> NodeAnnotation {
    let standings: Vec<f64> =
        rounds.last().into_iter().flat_map(|last| &last.nodes).map(|node| node.standing).collect();
    let best = standings.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let worst = standings.iter().copied().fold(f64::INFINITY, f64::min);
    let width = (best - worst).max(f64::MIN_POSITIVE);
    NodeAnnotation {
        symbol: "shortfall".into(),
        name: "shortfall of standing".into(),
        axis: "shortfall of standing (0: contributed most, 1: least)".into(),
        low: "contributed most".into(),
        high: "contributed least".into(),
        low_on_top: "the highest standing on top".into(),
        values: standings.iter().map(|standing| (best - standing) / width).collect(),
    }
}

/// The last loss each node reported; before its first, that one.
fn reported_losses(rounds: &[ClosedRound]) -> LossSeries {
    let mut losses = first_losses(rounds);
    let after = |round: &ClosedRound| {
        for (loss, node) in losses.iter_mut().zip(&round.nodes) {
            *loss = reported(node).unwrap_or(*loss);
        }
        losses.clone()
    };
    LossSeries {
        name: "reported loss".into(),
        meaning: "As nodes report it: the error of their own forecasts since their last update, or else that of the \
                  model on their batch, whenever they took part. Nodes measure on different readings, so compare a node \
                  with itself."
            .into(),
        comparable: false,
        values: rounds.iter().map(after).collect(),
    }
}

/// The skill each node said last; none if no node did.
fn reported_skills(rounds: &[ClosedRound]) -> Option<NodeColumn> {
    let mut skills = vec![None; rounds.last().map_or(0, |last| last.nodes.len())];
    for (skill, node) in rounds.iter().flat_map(|round| round.nodes.iter().enumerate()) {
        if let MeasureResponse::Measured { skill: Some(said), .. } = node.measured {
            skills[skill] = Some(said.skill());
        }
    }
    let cell = |skill: &Option<f64>| skill.map_or("–".into(), |skill| format!("{:.1} %", 100.0 * skill));
    skills
        .iter()
        .any(Option::is_some)
        .then(|| NodeColumn { name: "skill".into(), cells: skills.iter().map(cell).collect() })
}

fn reported(node: &NodeRound) -> Option<f64> {
    match node.response {
        NodeResponse::Arrived { loss, online, .. } => Some(online.map_or(loss, |online| online.loss).into()),
        _ => None,
    }
}

fn first_losses(rounds: &[ClosedRound]) -> Vec<f64> {
    let mut first = vec![None; rounds.last().map_or(0, |last| last.nodes.len())];
    for round in rounds {
        for (first, node) in first.iter_mut().zip(&round.nodes) {
            *first = first.or_else(|| reported(node));
        }
    }
    let known: Vec<f64> = first.iter().flatten().copied().collect();
    let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
    first.into_iter().map(|loss| loss.unwrap_or(mean)).collect()
}
