//! The published table of federated reinforcement learning: ρ of online score and ζ, with standard errors over 3 trials.

use evenhand_agents::GridGame;

use crate::experiment::variant::Variant;
use crate::scenario::AgentCorruption;

/// Rows of the table; columns are Breakout, Pong and Space Invaders with reward noise, then with state noise.
type PublishedRow = [(f64, f64); 6];

const FEDAVG: PublishedRow =
    [(0.169, 0.755), (0.329, 0.298), (-0.036, 0.371), (-0.160, 0.343), (0.018, 0.257), (0.164, 0.262)];
const QFFL: PublishedRow =
    [(-0.229, 0.251), (0.136, 0.506), (0.407, 0.361), (-0.049, 0.308), (-0.486, 0.360), (-0.173, 0.322)];
const FGFL: PublishedRow =
    [(-0.884, 0.018), (-0.861, 0.028), (-0.377, 0.223), (-0.858, 0.049), (-0.760, 0.002), (-0.054, 0.043)];
const GOG: PublishedRow =
    [(-0.898, 0.040), (-0.869, 0.060), (-0.399, 0.167), (-0.481, 0.172), (0.328, 0.352), (-0.298, 0.390)];
const OURS: PublishedRow =
    [(-0.900, 0.032), (-0.946, 0.010), (-0.646, 0.291), (-0.978, 0.012), (-0.817, 0.032), (0.283, 0.261)];

/// The published figure and its standard error; the paper's own method for every variant of it.
pub fn published_cell(variant: Variant, corruption: AgentCorruption, game: GridGame) -> Option<(f64, f64)> {
    let row = match variant {
        Variant::Fedavg => FEDAVG,
        Variant::QFfl => QFFL,
        Variant::Fgfl => FGFL,
        Variant::Gog => GOG,
        variant if variant.is_ours() => OURS,
        _ => return None,
    };
    let first = match corruption {
        AgentCorruption::RewardNoise => 0,
        AgentCorruption::StateNoise => 3,
        AgentCorruption::Memory | AgentCorruption::Exploration => return None,
    };
    let column = GridGame::ALL.iter().position(|other| *other == game)?;
    row.get(first + column).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cells as the paper prints them, one of each row and of each column.
    #[test]
    fn cells_stand_where_the_paper_has_them() {
        let cell = published_cell;
        let (reward, state) = (AgentCorruption::RewardNoise, AgentCorruption::StateNoise);
        assert_eq!(cell(Variant::Fedavg, reward, GridGame::Breakout), Some((0.169, 0.755)));
        assert_eq!(cell(Variant::QFfl, reward, GridGame::SpaceInvaders), Some((0.407, 0.361)));
        assert_eq!(cell(Variant::Fgfl, state, GridGame::Pong), Some((-0.760, 0.002)));
        assert_eq!(cell(Variant::Gog, state, GridGame::SpaceInvaders), Some((-0.298, 0.390)));
        assert_eq!(cell(Variant::Paper, reward, GridGame::Pong), Some((-0.946, 0.010)));
        assert_eq!(cell(Variant::Evenhand, state, GridGame::Breakout), Some((-0.978, 0.012)));
        assert_eq!(cell(Variant::Paper, AgentCorruption::Memory, GridGame::Pong), None);
    }
}
