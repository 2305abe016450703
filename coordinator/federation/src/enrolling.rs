//! Waiting for enough nodes.

use serde::{Deserialize, Serialize};

use super::Phase;
use super::drift::DriftWatch;
use super::exploiting::Exploiting;
use super::exploring::Exploring;
use super::input::Tick;
use super::shared::Shared;

/// Nodes gather in the lobby until the federation can begin.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Enrolling {
    /// The operator does not want to wait for more.
    pub(super) begin: bool,
}

impl Enrolling {
    /// Whether enough are there.
    pub(super) fn is_complete(&self, shared: &Shared) -> bool {
        let present = shared.roster.present();
        let wanted = if self.begin { 1 } else { shared.rules.federation.nodes_min as usize };
        !shared.paused && present >= wanted
    }

    /// Begins: by measuring contributions, unless the strategy does not want them.
    pub(super) fn begin(self, shared: &mut Shared, now: Tick) -> Phase {
        match shared.strategy.get().explores() {
            true => Phase::Exploring(Exploring::new(now)),
            false => Phase::Exploiting(Exploiting::new(shared, now, DriftWatch::default())),
        }
    }
}
