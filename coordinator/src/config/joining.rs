//! `[joining]`: who may join, and by what.

use serde::{Deserialize, Serialize};

use crate::joining::JoinPolicy;

/// Who may join. What is said between nodes and coordinator is sealed end to end in any case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JoiningConfig {
    /// "invited": nodes with an invitation, made by `evenhand-coordinator invite`. "open": any node under a name that nobody
    /// has; the name is its key's from then on. "auto": open if the broker runs on this machine and serves it alone.
    pub policy: JoinChoice,
    /// The broker's address as nodes see it, for invitations: mqtts://HOST; "" for the coordinator's own.
    pub address: String,
}

/// The choice of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JoinChoice {
    /// By where the broker runs.
    #[default]
    Auto,
    /// Nodes with an invitation.
    Invited,
    /// Any node.
    Open,
}

impl Default for JoiningConfig {
    fn default() -> Self {
        Self { policy: JoinChoice::Auto, address: String::new() }
    }
}

impl JoiningConfig {
    pub(super) const SOURCE: &str = include_str!("joining.rs");

    /// The policy, for a broker that serves this machine alone or others too.
    pub fn policy(&self, broker_is_local: bool) -> JoinPolicy {
        match self.policy {
            JoinChoice::Invited => JoinPolicy::Invited,
            JoinChoice::Open => JoinPolicy::Open,
            JoinChoice::Auto if broker_is_local => JoinPolicy::Open,
            JoinChoice::Auto => JoinPolicy::Invited,
        }
    }
}
