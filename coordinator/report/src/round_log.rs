//! The rounds of a run, by node.

use std::collections::HashMap;

use evenhand_federation::ClosedRound;
use evenhand_protocol::message::Phase;

/// Closed rounds, reduced to the figures that are shown of them; nodes keep one position in all of them.
#[derive(Debug, Clone)]
pub struct RoundLog {
    nodes: Vec<String>,
    positions: HashMap<String, usize>,
    /// Oldest first.
    pub rounds: Vec<RoundSummary>,
}

/// One round. Vectors have an entry a node; nodes that had not joined yet have zeros.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundSummary {
    /// 1 for the first.
    pub round: u32,
    /// True if everybody took part while contributions were measured; false if nodes were drawn.
    pub exploring: bool,
    /// Positions of the nodes that received the model, ascending.
    pub drawn: Vec<usize>,
    /// Mean loss the drawn nodes reported, by samples; NaN where none did.
    pub loss: f64,
    /// φ, where the round measured it.
    pub contributions: Option<Vec<f64>>,
    /// ψ after the round.
    pub standings: Vec<f64>,
    /// ϱ the draw was made with.
    pub sampling_probabilities: Vec<f64>,
    /// β.
    pub temperature: f64,
    /// The stop rule's verdict, where it was asked.
    pub stop: Option<StopSummary>,
}

/// The stop rule's verdict on a round.
#[derive(Debug, Clone, PartialEq)]
pub struct StopSummary {
    /// p of its test, where there were rounds enough.
    pub p_value: Option<f64>,
    /// True if it ended exploring.
    pub stop: bool,
    /// Why, or why not yet.
    pub reason: String,
}

impl RoundLog {
    /// An empty log of these nodes.
    pub fn new(nodes: Vec<String>) -> Self {
        let positions = nodes.iter().cloned().enumerate().map(|(position, name)| (name, position)).collect();
        Self { nodes, positions, rounds: Vec::new() }
    }

    /// The log of all `rounds`, with every node that has joined by the last.
    pub fn of(rounds: &[ClosedRound]) -> Self {
        let names = rounds.last().into_iter().flat_map(|last| &last.nodes);
        let mut log = Self::new(names.map(|node| node.node.to_string()).collect());
        for round in rounds {
            log.rounds.push(log.summary(round));
        }
        log
    }

    /// Names, by position.
    pub fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// A closed round, reduced to what is shown of this log's nodes.
    pub fn summary(&self, closed: &ClosedRound) -> RoundSummary {
        let nodes = self.nodes.len();
        let exploring = closed.phase == Phase::Exploring;
        let verdict = closed.verdict.as_ref().filter(|_| closed.phase != Phase::Exploiting);
        let mut summary = RoundSummary {
            round: closed.round,
            exploring,
            drawn: Vec::new(),
            loss: closed.loss.unwrap_or(f64::NAN),
            contributions: None,
            standings: vec![0.0; nodes],
            sampling_probabilities: vec![0.0; nodes],
            temperature: closed.temperature,
            stop: verdict.map(|verdict| StopSummary {
                p_value: verdict.p_value,
                stop: verdict.stop,
                reason: verdict.reason.to_string(),
            }),
        };
        for node in &closed.nodes {
            let Some(position) = self.position(node.node.as_str()) else { continue };
            summary.standings[position] = node.standing;
            summary.sampling_probabilities[position] = node.sampling_probability;
            if let Some(contribution) = node.contribution {
                summary.contributions.get_or_insert_with(|| vec![0.0; nodes])[position] = contribution;
            }
            if node.was_asked() {
                summary.drawn.push(position);
            }
        }
        summary.drawn.sort_unstable();
        summary
    }

    /// The position of a node.
    pub fn position(&self, node: &str) -> Option<usize> {
        self.positions.get(node).copied()
    }

    /// γ of every node after every round: 0 where it received the model, one more than before where it did not.
    pub fn staleness(&self) -> Vec<Vec<u32>> {
        let mut now = vec![0; self.nodes.len()];
        let after = |round: &RoundSummary| {
            now.iter_mut().for_each(|wait| *wait += 1);
            round.drawn.iter().for_each(|&node| now[node] = 0);
            now.clone()
        };
        self.rounds.iter().map(after).collect()
    }

    /// The last round before nodes were first drawn; none while all rounds explored.
    pub fn explored_until(&self) -> Option<u32> {
        self.drawing_rounds().next().map(|first| first.round - 1)
    }

    /// The rounds in which nodes were drawn.
    pub fn drawing_rounds(&self) -> impl Iterator<Item = &RoundSummary> {
        self.rounds.iter().filter(|round| !round.exploring)
    }
}
