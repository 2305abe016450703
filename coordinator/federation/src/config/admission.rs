//! `[admission]`: limits on nodes and updates.

use evenhand_protocol::identity::{Digest, NodeId};
use evenhand_protocol::message::Birth;
use serde::{Deserialize, Serialize};

use super::check::{RuleError, at_least_one, within};

/// Products of updates up to this norm stay within single precision, in which they are summed.
const NORM_MAX: f64 = 1e18;

/// Limits on nodes and updates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdmissionConfig {
    /// The nodes that may enrol; empty for all.
    pub nodes: Vec<NodeId>,
    /// SHA-256, in hex, of the token a node must show; empty for none.
    pub token_sha256: String,
    /// The largest norm of an update.
    pub norm_max: f64,
    /// The treatment of a larger one.
    pub on_norm_exceeded: NormPolicy,
    /// An update longer than so many times the round's median is clipped to that; 0 clips none.
    pub norm_ratio_max: f64,
    /// Samples count up to so many times the round's median; 0 counts all.
    pub samples_ratio_max: f64,
    /// Messages accepted from one node between two rounds; more are refused unread.
    pub messages_max: u32,
}

impl Default for AdmissionConfig {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            token_sha256: String::new(),
            norm_max: 1e4,
            on_norm_exceeded: NormPolicy::Refuse,
            norm_ratio_max: 3.0,
            samples_ratio_max: 3.0,
            messages_max: 64,
        }
    }
}

/// The treatment of an update that is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NormPolicy {
    /// It does not count.
    #[default]
    Refuse,
    /// It is scaled down to the limit.
    Clip,
}

impl AdmissionConfig {
    /// This file, whose doc comments explain the keys in `print-config`.
    pub const SOURCE: &str = include_str!("admission.rs");

    pub(super) fn check(&self) -> Result<(), RuleError> {
        let norm_max = self.norm_max;
        let holds = norm_max > 0.0 && norm_max <= NORM_MAX;
        within("admission.norm_max", norm_max, holds, "a number above 0, and at most 1e18")?;
        for (field, ratio) in [
            ("admission.norm_ratio_max", self.norm_ratio_max),
            ("admission.samples_ratio_max", self.samples_ratio_max),
        ] {
            let holds = ratio == 0.0 || (ratio.is_finite() && ratio >= 1.0);
            within(field, ratio, holds, "0 (off), or a number from 1 on")?;
        }
        at_least_one("admission.messages_max", self.messages_max)?;
        let digest = &self.token_sha256;
        let hex = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        if digest.is_empty() || hex { Ok(()) } else { Err(RuleError::TokenDigest) }
    }

    /// True if a node's name is on the list.
    pub(crate) fn lists(&self, node: &NodeId) -> bool {
        self.nodes.is_empty() || self.nodes.contains(node)
    }

    /// True if a node may take part: its name is on the list, and it shows the token.
    pub(crate) fn admits(&self, node: &NodeId, birth: &Birth) -> bool {
        let proven = self.token_sha256.is_empty()
            || birth.token.as_ref().is_some_and(|token| {
                Digest::of(token.as_bytes()).to_string().eq_ignore_ascii_case(&self.token_sha256)
            });
        self.lists(node) && proven
    }
}
