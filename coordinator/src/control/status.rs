//! The status of a federation, for operators and scripts.

use std::fmt;

use serde::{Deserialize, Serialize};

use evenhand_federation::{ClosedRound, Federation};

/// The status of a federation, running or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FederationStatus {
    /// Its name.
    pub federation: String,
    /// The coordinator's process, if one runs.
    pub process: Option<u32>,
    /// Its phase.
    pub phase: String,
    /// The cause of its failure, if it has failed.
    pub failure: Option<String>,
    /// The round that is open, or the last one.
    pub round: u32,
    /// The number of rounds after which it ends; 0 for no end.
    pub rounds: u32,
    /// That rounds come faster than the meters have new data, if they do.
    pub outrun: Option<String>,
    /// SHA-256 of the latest weights.
    pub model: String,
    /// Mean loss of the model on the batches of the last closed round.
    pub loss: Option<f64>,
    /// The reason if its contributions could not be measured.
    pub unmeasured: Option<String>,
    /// The stop rule's verdict on it.
    pub verdict: Option<String>,
    /// Every member.
    pub nodes: Vec<NodeStatus>,
}

/// The status of one node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Its name.
    pub id: String,
    /// True while it is connected.
    pub online: bool,
    /// True if the operator removed it.
    pub removed: bool,
    /// ψ.
    pub standing: f64,
    /// Its standard error.
    pub standing_error: f64,
    /// Rounds in which it received the model.
    pub drawn: u32,
    /// Rounds since then.
    pub staleness: u32,
}

impl FederationStatus {
    /// The status of a federation with its last closed round.
    pub fn new(federation: &Federation, last: Option<&ClosedRound>, process: Option<u32>) -> Self {
        let nodes = federation.members().iter().map(|member| NodeStatus {
            id: member.id().to_string(),
            online: member.is_online() && !member.is_removed(),
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
            outrun: federation.outruns_meters().map(|outrun| outrun.to_string()),
            model: federation.weights().digest().to_string(),
            loss: last.and_then(|record| record.loss),
            unmeasured: last.and_then(|record| record.unmeasured.clone()),
            verdict: last.and_then(ClosedRound::verdict_text),
            nodes: nodes.collect(),
        }
    }
}

impl FederationStatus {
    /// The round under way; of how many, if there is an end.
    pub fn progress(&self) -> String {
        match self.rounds {
            0 => format!("round {}", self.round),
            rounds => format!("round {} of {rounds}", self.round),
        }
    }
}

impl fmt::Display for FederationStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let process = match self.process {
            Some(process) => format!("running as process {process}"),
            None => "not running".into(),
        };
        writeln!(
            out,
            "federation {}: {}, {}; coordinator {process}",
            self.federation,
            self.phase,
            self.progress()
        )?;
        if let Some(failure) = &self.failure {
            writeln!(out, "failed: {failure}")?;
        }
        if let Some(outrun) = &self.outrun {
            writeln!(out, "{outrun}")?;
        }
        if let Some(loss) = self.loss {
            writeln!(out, "loss {loss:.5}")?;
        }
        if let Some(reason) = &self.unmeasured {
            writeln!(out, "contributions of the last round were not measured: {reason}")?;
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
                "node", "", "standing", "± error", "drawn", "stale"
            )?;
        }
        for node in &self.nodes {
            let presence = match (node.removed, node.online) {
                (true, _) => "removed",
                (false, true) => "online",
                (false, false) => "offline",
            };
            writeln!(
                out,
                "{:width$}  {presence:>8}  {:>10.6}  {:>9.6}  {:>6}  {:>7}",
                node.id, node.standing, node.standing_error, node.drawn, node.staleness
            )?;
        }
        Ok(())
    }
}
