//! Enrolment: nodes are pending until the federation can begin.

use serde::{Deserialize, Serialize};

use crate::config::Rules;
use crate::roster::Roster;

/// The phase before the first round.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Enrolling {
    /// The operator's command to begin without more nodes.
    pub(crate) begin: bool,
}

impl Enrolling {
    /// True if enough nodes are present.
    pub(crate) fn is_complete(&self, roster: &Roster, rules: &Rules) -> bool {
        let wanted = if self.begin { 1 } else { rules.federation.nodes_min as usize };
        roster.present() >= wanted
    }
}
