//! Settings of deep Q-learning.

use serde::{Deserialize, Serialize};

use crate::exploration::ExplorationSchedule;
use crate::learning_rule::LearningRule;

/// The network by which the values of next states are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetNetwork {
    /// A copy of the weights, renewed after so many gradient steps.
    Every(u64),
    /// None: the weights themselves, as the published code in fact has it.
    None,
}

/// Settings of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DqnSettings {
    /// γ: the worth of the next decision's value.
    pub discount: f32,
    /// Transitions in a gradient step.
    pub batch: usize,
    /// Transitions in the replay memory.
    pub memory: usize,
    /// Decisions at random before the first gradient step.
    pub replay_start: usize,
    /// Decisions between two gradient steps.
    pub train_every: u64,
    /// The target network.
    pub target: TargetNetwork,
    /// ε.
    pub exploration: ExplorationSchedule,
    /// How gradients become steps.
    pub rule: LearningRule,
    /// Each number of a gradient is clipped to ± this.
    pub gradient_clip: f32,
    /// An episode is cut off after so many decisions.
    pub episode_decisions_max: u32,
}

impl DqnSettings {
    /// The settings of Young and Tian 2019 for grid games.
    pub fn minatar() -> Self {
        Self {
            discount: 0.99,
            batch: 32,
            memory: 100_000,
            replay_start: 5_000,
            train_every: 1,
            target: TargetNetwork::Every(1_000),
            exploration: ExplorationSchedule { first: 1.0, last: 0.1, decisions: 100_000 },
            rule: LearningRule::RmsProp { learning_rate: 2.5e-4, decay: 0.95, epsilon: 0.01 },
            gradient_clip: 1.0,
            episode_decisions_max: 5_000,
        }
    }

    /// The paper's settings for Atari; a target network as in Mnih et al. 2015, renewed after 10,000 decisions.
    pub fn atari() -> Self {
        Self {
            replay_start: 10_000,
            train_every: 2,
            target: TargetNetwork::Every(5_000),
            exploration: ExplorationSchedule { first: 1.0, last: 0.1, decisions: 850_000 },
            rule: LearningRule::Adam { learning_rate: 2e-5 },
            episode_decisions_max: 27_000,
            ..Self::minatar()
        }
    }
}
