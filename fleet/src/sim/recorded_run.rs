//! A run as it was recorded: its rules, its rounds, and the online scores of all nodes.

use evenhand_federation::Rules;
use evenhand_report::RoundLog;

use super::online::OnlineScore;
use super::{RunCost, RunEnd};

/// A run that has ended; its table, its JSON object and its report are made from it.
#[derive(Debug, Clone)]
pub struct RecordedRun {
    /// Its terms.
    pub description: RunDescription,
    /// Its nodes, in the order of their positions in the log.
    pub nodes: Vec<SimulatedNode>,
    /// Its rounds.
    pub log: RoundLog,
    /// By round and node: the model that the node holds, on the next clean samples of all nodes.
    pub online: Vec<Vec<OnlineScore>>,
    /// By node: the skill of its own forecasts, where it made any.
    pub skills: Vec<Option<f64>>,
    /// A node that an experiment is about.
    pub watched: Option<usize>,
    /// Its end.
    pub ended: RunEnd,
    /// Its cost.
    pub cost: RunCost,
}

/// The terms of a run.
#[derive(Debug, Clone)]
pub struct RunDescription {
    /// The federation's rules.
    pub rules: Rules,
    /// The strategy's name.
    pub strategy: String,
    /// The transport's name.
    pub transport: String,
    /// The command that repeats the run.
    pub command: String,
}

/// A node and the quality of its data.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedNode {
    /// Its name.
    pub id: String,
    /// ζ: how much noise its data carry; 0 is clean.
    pub zeta: f64,
}
