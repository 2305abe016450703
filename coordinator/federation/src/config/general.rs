//! `[federation]`: name, size and pace.

use evenhand_protocol::identity::FederationId;
use serde::{Deserialize, Serialize};

use super::check::{RuleError, at_least_one, within};

/// Name, size and pace of a federation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GeneralConfig {
    /// The federation's name, one level of its topics.
    pub name: FederationId,
    /// Policy by which contributions are measured and rewarded.
    pub policy: Policy,
    /// Seed of every random draw.
    pub seed: u64,
    /// The federation is finished after so many rounds; 0 for no end.
    pub rounds: u32,
    /// It begins when so many nodes are online.
    pub nodes_min: u32,
    /// More are not enrolled.
    pub nodes_max: u32,
    /// A round goes on without the nodes that have not answered by then.
    pub round_deadline_ms: u32,
    /// Rounds begin at least so far apart; 0 for one right after the other.
    pub round_interval_ms: u32,
}

impl Default for GeneralConfig {
    fn default() -> Self {
        Self {
            name: FederationId::new("home").expect("a valid name"),
            policy: Policy::default(),
            seed: 1,
            rounds: 0,
            nodes_min: 12,
            nodes_max: 10_000,
            round_deadline_ms: 30_000,
            round_interval_ms: 0,
        }
    }
}

/// The way in which contributions are measured and rewarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Everybody is measured in every round at reference weights; odds follow what is known so far. See `[continuous]`.
    #[default]
    Continuous,
    /// The paper's: everybody explores until the standings are settled, then they are fixed. See `[contribution]`, `[exploring]`
    /// and `[exploiting]`.
    Paper,
}

impl std::fmt::Display for Policy {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(out)
    }
}

impl GeneralConfig {
    /// True if `round` is the last one, or beyond it.
    pub(crate) fn ends_with(&self, round: u32) -> bool {
        self.rounds > 0 && round >= self.rounds
    }

    /// This file, whose doc comments explain the keys in `print-config`.
    pub const SOURCE: &str = include_str!("general.rs");

    pub(super) fn check(&self) -> Result<(), RuleError> {
        at_least_one("federation.nodes_min", self.nodes_min)?;
        at_least_one("federation.round_deadline_ms", self.round_deadline_ms)?;
        let enough = self.nodes_max >= self.nodes_min;
        within("federation.nodes_max", self.nodes_max.into(), enough, "at least federation.nodes_min")
    }

    /// Takes over from `wanted` what may change while a federation is under way: how long it lasts, its size and pace.
    pub(super) fn amend(&mut self, wanted: &Self) {
        self.rounds = wanted.rounds;
        self.nodes_max = wanted.nodes_max;
        self.round_deadline_ms = wanted.round_deadline_ms;
        self.round_interval_ms = wanted.round_interval_ms;
    }
}
