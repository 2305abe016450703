//! What a node says in its log: once, until it is over or something else.

use evenhand_link::MessageError;
use evenhand_protocol::envelope::DecodeError;
use evenhand_protocol::identity::{Digest, NodeId};

use crate::core::Node;
use crate::window::Window;

/// What was said and need not be said again.
#[derive(Debug)]
pub(super) struct Complaints {
    node: NodeId,
    lost: bool,
    version: Option<u16>,
    malformed: bool,
    training: Option<String>,
    forecast: Option<String>,
    unfit: Option<Digest>,
    refused: Option<u32>,
    restarts: u32,
    kept_out: u64,
}

impl Complaints {
    /// Nothing was said yet; what `state` lived through before is not said again.
    pub(super) fn new(node: NodeId, state: &Node) -> Self {
        Self {
            node,
            lost: false,
            version: None,
            malformed: false,
            training: None,
            forecast: None,
            unfit: None,
            refused: None,
            restarts: state.window().counts().restarts,
            kept_out: 0,
        }
    }

    pub(super) fn connected(&mut self, session_present: bool) {
        self.lost = false;
        tracing::info!(node = %self.node, session_present, "connected");
    }

    pub(super) fn lost(&mut self, cause: &str) {
        if !std::mem::replace(&mut self.lost, true) {
            tracing::warn!(node = %self.node, cause, "the broker is away; trying again");
        }
    }

    pub(super) fn malformed(&mut self, topic: &str, error: &MessageError) {
        let said = match error {
            MessageError::Envelope(DecodeError::Version { theirs, .. }) => {
                self.version.replace(*theirs) == Some(*theirs)
            }
            _ => std::mem::replace(&mut self.malformed, true),
        };
        if !said {
            tracing::warn!(node = %self.node, %error, topic, "heard what is no message for this node");
        }
    }

    /// What went wrong with the last training, if anything did.
    pub(super) fn trained(&mut self, cause: Option<String>) {
        if let Some(cause) = news(&mut self.training, cause) {
            tracing::error!(node = %self.node, cause, "cannot train");
        }
    }

    /// What went wrong with the last forecast, if anything did.
    pub(super) fn forecast(&mut self, cause: Option<String>) {
        if let Some(cause) = news(&mut self.forecast, cause) {
            tracing::error!(node = %self.node, cause, "cannot forecast");
        }
    }

    /// What can be seen in the node itself.
    pub(super) fn look_at(&mut self, node: &Node) {
        let unfit = node.unfit();
        if let Some(graph) = unfit.filter(|_| self.unfit != unfit) {
            tracing::error!(
                node = %self.node, %graph,
                "the federation's model does not fit this node's data or limits; its rounds are declined"
            );
        }
        self.unfit = unfit;
        let restarts = node.window().counts().restarts;
        if restarts > self.restarts {
            tracing::warn!(node = %self.node, "the clock of the readings jumped; the series begins anew");
        }
        self.restarts = restarts;
        if let Window::Series(series) = node.window()
            && series.kept_out() > std::mem::replace(&mut self.kept_out, series.kept_out())
        {
            tracing::warn!(
                node = %self.node,
                "a reading is more than a hundred times as large as any before; its step is kept out. If the meter is right, a few more are believed"
            );
        }
        if let Some((round, refusal)) = node.refusal()
            && self.refused.replace(round) != Some(round)
        {
            tracing::warn!(node = %self.node, round, ?refusal, "the coordinator did not count an update");
        }
    }
}

/// Remembers `cause`, and gives it back if it is another than before.
fn news(before: &mut Option<String>, cause: Option<String>) -> Option<&str> {
    let other = *before != cause;
    *before = cause;
    before.as_deref().filter(|_| other)
}
