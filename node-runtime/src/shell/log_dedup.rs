//! Log de-duplication: a condition is logged once, until it ends or changes.

use std::collections::BTreeSet;
use std::time::Instant;

use evenhand_link::MessageError;
use evenhand_program::log_rate::LogRate;
use evenhand_protocol::envelope::DecodeError;
use evenhand_protocol::identity::{Digest, FederationId, NodeId};
use evenhand_seal::{PublicKey, Rejection, SealError};

use super::answer_watch::Unanswered;
use super::status::reason;
use crate::core::Node;

/// Different causes of one disconnection that are logged: each member of a cluster may have its own.
const CAUSES_MAX: usize = 8;

/// Lines about connections in a minute.
const LINK_LINES: u32 = 6;

/// Lines that foreign messages cause, limited by time.
#[derive(Debug, Default)]
struct ForeignLines {
    version: LogRate,
    malformed: LogRate,
    unsealed: LogRate,
    rejected: LogRate,
    unfit: LogRate,
    refused: LogRate,
    excessive: LogRate,
    too_few: LogRate,
}

/// Conditions that were logged.
#[derive(Debug)]
pub(super) struct LogDedup {
    node: NodeId,
    /// The causes that were logged since the last connection.
    disconnected: BTreeSet<String>,
    /// Of connections that are made and lost again and again.
    links: LogRate,
    /// Of what anybody can cause who can publish.
    foreign: ForeignLines,
    training: Option<String>,
    forecast: Option<String>,
    unfit: Option<Digest>,
    refused: Option<u32>,
    excessive: Option<u32>,
    too_few: Option<u32>,
    restarts: u32,
    rejected: u64,
    /// The sentence about a certificate that ends.
    certificate_told: Option<String>,
}

impl LogDedup {
    /// Nothing was logged yet; clock jumps before this start are not logged.
    pub(super) fn new(node: NodeId, state: &Node) -> Self {
        Self {
            node,
            disconnected: BTreeSet::new(),
            links: LogRate::default().with_lines(LINK_LINES),
            certificate_told: None,
            foreign: ForeignLines::default(),
            training: None,
            forecast: None,
            unfit: None,
            refused: None,
            excessive: None,
            too_few: None,
            restarts: state.window().counts().restarts,
            rejected: 0,
        }
    }

    pub(super) fn connected(&mut self, session_present: bool) {
        self.disconnected.clear();
        if let Some(left_out) = self.links.permit(Instant::now()) {
            tracing::info!(node = %self.node, session_present, left_out, "connected to broker");
        }
    }

    pub(super) fn disconnected(&mut self, cause: &str) {
        if self.disconnected.len() < CAUSES_MAX
            && self.disconnected.insert(cause.to_owned())
            && let Some(left_out) = self.links.permit(Instant::now())
        {
            tracing::warn!(node = %self.node, left_out, "no connection to the broker, trying again: {cause}");
        }
    }

    /// The coordinator has not answered this node since it is connected.
    pub(super) fn unanswered(&self, unanswered: Unanswered, federation: &FederationId) {
        let node = &self.node;
        match unanswered {
            Unanswered::ManifestOnly => tracing::warn!(
                %node,
                "connected for a minute, but the coordinator of {federation} does not answer this node: is the broker's user \
                 name, or the name in the certificate, {node} as in node.id, and may it use the topics of {federation}?"
            ),
            Unanswered::Silence => tracing::warn!(
                %node,
                "connected for a minute, but nothing is heard of the federation {federation}: does its coordinator run on this \
                 broker, is node.federation its name, and may this node read its topics?"
            ),
        }
    }

    /// The sentence about a certificate that has ended or is about to; once a day.
    pub(super) fn certificate(&mut self, sentence: Option<String>) {
        if let Some(sentence) = changed(&mut self.certificate_told, sentence) {
            tracing::warn!(node = %self.node, "{sentence}");
        }
    }

    pub(super) fn secured(&mut self, learnt: Option<PublicKey>) {
        match learnt {
            None => tracing::info!(node = %self.node, "in session with the coordinator"),
            Some(key) => {
                tracing::info!(node = %self.node, %key, "in session with a coordinator whose key was not known");
            }
        }
    }

    pub(super) fn rejected(&mut self, rejection: Rejection) {
        if let Some(left_out) = self.foreign.rejected.permit(Instant::now()) {
            tracing::error!(node = %self.node, left_out, "the coordinator does not admit this node: {rejection}");
        }
    }

    /// Messages that nobody vouches for; those of a session that has ended are no news.
    pub(super) fn refused(&mut self, topic: &str, error: &MessageError) {
        if *error == MessageError::Seal(SealError::NoSession) {
            tracing::debug!(node = %self.node, topic, "a message of a session that has ended");
        } else if let Some(left_out) = self.foreign.unsealed.permit(Instant::now()) {
            tracing::warn!(node = %self.node, %error, topic, left_out, "ignoring a message that is not the coordinator's");
        }
    }

    pub(super) fn malformed(&mut self, topic: &str, error: &MessageError) {
        let rate = match error {
            MessageError::Envelope(DecodeError::Version { .. }) => &mut self.foreign.version,
            _ => &mut self.foreign.malformed,
        };
        if let Some(left_out) = rate.permit(Instant::now()) {
            tracing::warn!(node = %self.node, %error, topic, left_out, "ignoring a malformed message");
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
        if let Some(graph) = unfit.filter(|_| self.unfit != unfit)
            && self.foreign.unfit.permit(Instant::now()).is_some()
        {
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
            && let Some(left_out) = self.foreign.refused.permit(Instant::now())
        {
            let (name, reason) = (refusal.name(), reason(refusal));
            tracing::warn!(node = %self.node, round, left_out, "refused by the coordinator ({name}): {reason}");
        }
        let excessive = node.excessive_epochs();
        if let Some(epochs) = excessive.filter(|_| self.excessive.is_none())
            && let Some(left_out) = self.foreign.excessive.permit(Instant::now())
        {
            tracing::warn!(
                node = %self.node, epochs, left_out,
                "declining an order with more epochs than node.epochs_max"
            );
        }
        self.excessive = excessive;
        let too_few = node.too_few_samples();
        if let Some(samples) = too_few.filter(|_| self.too_few.is_none())
            && let Some(left_out) = self.foreign.too_few.permit(Instant::now())
        {
            tracing::warn!(
                node = %self.node, samples, least = node.floor().least(), left_out,
                "declining orders for fewer samples than privacy.readings_min; the coordinator's training.samples_max must be raised"
            );
        }
        self.too_few = too_few;
    }
}

/// Stores `cause`, and returns it if it has changed.
fn changed(before: &mut Option<String>, cause: Option<String>) -> Option<&str> {
    let is_new = *before != cause;
    *before = cause;
    before.as_deref().filter(|_| is_new)
}
