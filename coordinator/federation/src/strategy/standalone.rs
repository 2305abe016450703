//! Everybody learns alone: what collaboration must beat.

use serde::{Deserialize, Serialize};

use super::{Harvested, Merged, Strategy};

/// θᵢ ← θᵢ − ηΔθᵢ; θ stays what it was at the beginning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standalone;

impl Strategy for Standalone {
    fn asks_everybody(&self) -> bool {
        true
    }

    fn merge(&mut self, round: &Harvested<'_>) -> Merged {
        Merged { latest: round.latest.clone(), own: round.stepped_alone() }
    }
}
