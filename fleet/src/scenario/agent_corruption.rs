//! What makes agents of a game differ: noise on what they observe, or settings of their own.

use evenhand_agents::{DqnSettings, ExplorationSchedule, GridGame, ObservationNoise};
use serde::{Deserialize, Serialize};

use crate::data::AsPublished;

/// Variance of the noise on frames, as the paper has it.
const FRAME_VARIANCE: f64 = 50.0;
/// Standard deviation of the noise on frames, as the published code has it.
const FRAME_DEVIATION_IN_CODE: f64 = 50.0;
/// Memory of all agents together, of which each has a share.
const MEMORY_SHARES: [f64; 5] = [0.05, 0.1, 0.15, 0.35, 0.35];
/// Probabilities of a random action.
const EXPLORATIONS: [f64; 5] = [0.0, 0.2, 0.4, 0.6, 0.8];

/// What makes agents differ.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, clap::ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum AgentCorruption {
    /// A share ζ of the rewards is replaced by −1, 0 or 1 at random
    RewardNoise,
    /// A share ζ of the frames has normally distributed noise on every byte
    StateNoise,
    /// Memories of different size
    Memory,
    /// Different, constant probabilities of a random action
    Exploration,
}

impl AgentCorruption {
    /// ζ of the published agents for noise, and otherwise the setting in which they differ: transitions in memory, or ε.
    pub fn published(self, game: GridGame) -> [f64; 5] {
        match (self, game) {
            (Self::RewardNoise | Self::StateNoise, GridGame::Pong) => [0.2, 0.1, 0.05, 0.0, 0.0],
            (Self::RewardNoise | Self::StateNoise, _) => [0.6, 0.4, 0.2, 0.0, 0.0],
            (Self::Memory, _) => MEMORY_SHARES,
            (Self::Exploration, _) => EXPLORATIONS,
        }
    }

    /// True if the agents' values are ζ: how bad their observations are.
    pub fn is_noise(self) -> bool {
        matches!(self, Self::RewardNoise | Self::StateNoise)
    }

    /// The value of each agent: as published, scaled by `level` for noise, over and over for further agents. At level 0 all
    /// agents are alike.
    pub fn values(self, game: GridGame, agents: usize, level: f64) -> Vec<f64> {
        let published = self.published(game);
        let mean = published.iter().sum::<f64>() / published.len() as f64;
        let origin = if self.is_noise() { 0.0 } else { mean };
        let value = |agent: usize| (1.0 - level) * origin + level * published[agent % published.len()];
        (0..agents).map(value).collect()
    }

    /// The noise of an agent with this value.
    pub fn noise(self, value: f64, as_published: AsPublished) -> ObservationNoise {
        let (frame_deviation, wraps) = match as_published {
            AsPublished::Paper => (FRAME_VARIANCE.sqrt(), false),
            AsPublished::Code => (FRAME_DEVIATION_IN_CODE, true),
        };
        match self {
            Self::RewardNoise => ObservationNoise { reward_share: value, ..Default::default() },
            Self::StateNoise => {
                ObservationNoise { frame_share: value, frame_deviation, wraps, ..Default::default() }
            }
            Self::Memory | Self::Exploration => ObservationNoise::default(),
        }
    }

    /// The settings of an agent with this value, one of so many.
    pub fn settings(self, value: f64, agents: usize, base: DqnSettings) -> DqnSettings {
        match self {
            Self::RewardNoise | Self::StateNoise => base,
            Self::Memory => {
                let all = base.memory as f64 * agents as f64;
                let memory = (value * all).round().max(1.0) as usize;
                DqnSettings { memory, ..base }
            }
            Self::Exploration => DqnSettings { exploration: ExplorationSchedule::constant(value), ..base },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_has_equal_agents_and_level_one_the_published_ones() {
        for corruption in [
            AgentCorruption::RewardNoise,
            AgentCorruption::StateNoise,
            AgentCorruption::Memory,
            AgentCorruption::Exploration,
        ] {
            let values = |level| corruption.values(GridGame::Breakout, 5, level);
            assert_eq!(values(1.0), corruption.published(GridGame::Breakout));
            assert!(values(0.0).iter().all(|value| *value == values(0.0)[0]), "{corruption:?}");
        }
        assert_eq!(AgentCorruption::StateNoise.values(GridGame::Pong, 2, 1.0), [0.2, 0.1]);
    }

    #[test]
    fn agents_differ_as_published() {
        let base = DqnSettings::atari();
        assert_eq!(AgentCorruption::Memory.settings(0.05, 5, base).memory, 25_000);
        assert_eq!(AgentCorruption::Exploration.settings(0.4, 5, base).exploration.at(0), 0.4);
        let noise = |as_published| AgentCorruption::StateNoise.noise(0.6, as_published);
        assert!((noise(AsPublished::Paper).frame_deviation.powi(2) - 50.0).abs() < 1e-9);
        assert_eq!((noise(AsPublished::Code).frame_deviation, noise(AsPublished::Code).wraps), (50.0, true));
        assert_eq!(AgentCorruption::RewardNoise.noise(0.6, AsPublished::Paper).frame_share, 0.0);
    }
}
