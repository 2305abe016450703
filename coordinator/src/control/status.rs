//! How a federation stands, for an operator's eyes and scripts.

use std::fmt;

use serde::{Deserialize, Serialize};

use evenhand_federation::{ClosedRound, Federation};

/// A federation at one moment, running or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its name.
    pub federation: String,
    /// The coordinator's process, if one runs.
    pub process: Option<u32>,
    /// What it is doing.
    pub phase: String,
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// The round that is open, or the last one.
    pub round: u32,
    /// It ends after so many.
    pub rounds: u32,
    /// SHA-256 of the latest weights.
    pub model: String,
    /// Mean loss of the model on the batches of the last round that is over.
    pub loss: Option<f64>,
    /// Why its contributions were not measured, though they were to be.
    pub unmeasured: Option<String>,
    /// What the stop rule said of it.
    pub verdict: Option<String>,
    /// Every enrolled node.
    pub nodes: Vec<NodeStatus>,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Its name.
    pub id: String,
    /// Whether it was there when last heard of.
    pub present: bool,
    /// Whether the operator shut it out.
    pub removed: bool,
    /// ψ.
    pub standing: f64,
    /// Its standard error.
    pub standing_error: f64,
    /// How often it received the model.
    pub drawn: u32,
    /// Rounds since it last did.
    pub staleness: u32,
}

impl Status {
    /// Of a federation and the last of its rounds that is over.
    pub fn new(federation: &Federation, last: Option<&ClosedRound>, process: Option<u32>) -> Self {
        let nodes = federation.members().iter().map(|member| NodeStatus {
            id: member.id().to_string(),
            present: member.is_alive() && !member.is_removed(),
            removed: member.is_removed(),
            standing: member.standing().value(),
            standing_error: member.standing().error(),
            drawn: member.drawn(),
            staleness: member.staleness(federation.round()),
        });
        Self {
            federation: federation.rules().federation.name.to_string(),
            process,
            phase: federation.phase().name().into(),
            failure: federation.failure().map(ToString::to_string),
            round: federation.round(),
            rounds: federation.rules().federation.rounds,
            model: federation.weights().digest().to_string(),
            loss: last.and_then(|record| record.loss),
            unmeasured: last.and_then(|record| record.unmeasured.clone()),
            verdict: last.and_then(|record| record.verdict.as_ref()).map(|verdict| verdict.reason.clone()),
            nodes: nodes.collect(),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let process = match self.process {
            Some(process) => format!("runs as process {process}"),
            None => "does not run".into(),
        };
        writeln!(
            out,
            "federation {}: {}, round {} of {}; its coordinator {process}",
            self.federation, self.phase, self.round, self.rounds
        )?;
        if let Some(failure) = &self.failure {
            writeln!(out, "failed: {failure}")?;
        }
        if let Some(loss) = self.loss {
            writeln!(out, "loss {loss:.5}")?;
        }
        if let Some(why) = &self.unmeasured {
            writeln!(out, "contributions of the last round were not measured: {why}")?;
        }
        if let Some(verdict) = &self.verdict {
            writeln!(out, "stop rule: {verdict}")?;
        }
        writeln!(out, "model {}", self.model)?;
        let width = self.nodes.iter().map(|node| node.id.len()).max().unwrap_or(0).max(4);
        if !self.nodes.is_empty() {
            writeln!(
                out,
                "\n{:width$}  {:>8}  {:>10}  {:>9}  {:>6}  {:>7}",
                "node", "", "standing", "± error", "drawn", "waiting"
            )?;
        }
        for node in &self.nodes {
            let there = match (node.removed, node.present) {
                (true, _) => "removed",
                (false, true) => "there",
                (false, false) => "away",
            };
            writeln!(
                out,
                "{:width$}  {there:>8}  {:>10.6}  {:>9.6}  {:>6}  {:>7}",
                node.id, node.standing, node.standing_error, node.drawn, node.staleness
            )?;
        }
        Ok(())
    }
}
