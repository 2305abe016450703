//! Log de-duplication: a condition is logged once, until it ends or changes.

use evenhand_link::MessageError;
use evenhand_protocol::envelope::DecodeError;
use evenhand_protocol::identity::{Digest, NodeId};

use crate::core::Node;

/// Conditions that were logged.
#[derive(Debug)]
pub(super) struct LogDedup {
    node: NodeId,
    disconnected: bool,
    version: Option<u16>,
    malformed: bool,
    training: Option<String>,
    forecast: Option<String>,
    unfit: Option<Digest>,
    refused: Option<u32>,
    restarts: u32,
    rejected: u64,
}

impl LogDedup {
    /// Nothing was logged yet; clock jumps before this start are not logged.
    pub(super) fn new(node: NodeId, state: &Node) -> Self {
        Self {
            node,
            disconnected: false,
            version: None,
            malformed: false,
            training: None,
            forecast: None,
            unfit: None,
            refused: None,
            restarts: state.window().counts().restarts,
            rejected: 0,
        }
    }

    pub(super) fn connected(&mut self, session_present: bool) {
        self.disconnected = false;
        tracing::info!(node = %self.node, session_present, "connected to broker");
    }

    pub(super) fn disconnected(&mut self, cause: &str) {
        if !std::mem::replace(&mut self.disconnected, true) {
            tracing::warn!(node = %self.node, cause, "disconnected from broker; reconnecting");
        }
    }

    pub(super) fn malformed(&mut self, topic: &str, error: &MessageError) {
        let logged = match error {
            MessageError::Envelope(DecodeError::Version { theirs, .. }) => {
                self.version.replace(*theirs) == Some(*theirs)
            }
            _ => std::mem::replace(&mut self.malformed, true),
        };
        if !logged {
            tracing::warn!(node = %self.node, %error, topic, "ignoring a malformed message");
        }
    }

    /// The last training ended, with the cause if it failed.
    pub(super) fn trained(&mut self, cause: Option<String>) {
        if let Some(cause) = changed(&mut self.training, cause) {
            tracing::error!(node = %self.node, cause, "training failed");
        }
    }

    /// The last forecast ended, with the cause if it failed.
    pub(super) fn forecast(&mut self, cause: Option<String>) {
        if let Some(cause) = changed(&mut self.forecast, cause) {
            tracing::error!(node = %self.node, cause, "forecast failed");
        }
    }

    /// Logs conditions of the node itself.
    pub(super) fn check_node(&mut self, node: &Node) {
        let unfit = node.unfit();
        if let Some(graph) = unfit.filter(|_| self.unfit != unfit) {
            tracing::error!(
                node = %self.node, %graph,
                "the federation's model does not fit this node's data or limits; declining its rounds"
            );
        }
        self.unfit = unfit;
        let restarts = node.window().counts().restarts;
        if restarts > self.restarts {
            tracing::warn!(node = %self.node, "clock jump in the readings; restarting the series");
        }
        self.restarts = restarts;
        if let Some(series) = node.window().series()
            && series.rejected() > std::mem::replace(&mut self.rejected, series.rejected())
        {
            tracing::warn!(
                node = %self.node,
                "outlier rejected: a reading is more than a hundred times as large as any before; if it persists, it will be accepted"
            );
        }
        if let Some((round, refusal)) = node.refusal()
            && self.refused.replace(round) != Some(round)
        {
            tracing::warn!(node = %self.node, round, reason = refusal.name(), "update refused by the coordinator");
        }
    }
}

/// Stores `cause`, and returns it if it has changed.
fn changed(before: &mut Option<String>, cause: Option<String>) -> Option<&str> {
    let is_new = *before != cause;
    *before = cause;
    before.as_deref().filter(|_| is_new)
}
