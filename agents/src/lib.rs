//! Agents that learn games by deep Q-learning.
//!
//! | module | contents |
//! |---|---|
//! | `environment` | the trait of all games, [`Environment`] |
//! | `games` | grid games: Breakout, Pong, Space Invaders |
//! | `gymnasium` | any other environment, as a process of its own behind a pipe: the only I/O here |
//! | `corruption` | noise on rewards and frames |
//! | `replay_memory`, `exploration`, `learning_rule`, `settings` | the parts of deep Q-learning |
//! | `action_values`, `agent`, `saved_agent` | an agent, and its state between two starts |
//! | `player` | scores of a model as it is |
//!
//! An agent learns by acting:
//!
//! ```
//! use evenhand_agents::{DqnAgent, DqnSettings, GridGame, ObservationNoise};
//! use evenhand_models::{LoadOptions, Model, shipped};
//!
//! let model = Model::load(shipped::DQN_MINATAR_4, &LoadOptions::default())?;
//! let settings = DqnSettings { memory: 500, replay_start: 100, ..DqnSettings::minatar() };
//! let game = Box::new(GridGame::Breakout.environment(1));
//! let weights = model.initial_weights();
//! let mut agent = DqnAgent::new(settings, game, ObservationNoise::default(), &model, &weights, 1)?;
//! agent.fill_memory()?;
//! let training = agent.train(&weights, 10, || false)?.expect("not cancelled");
//! assert_eq!((training.update.len(), agent.gradient_steps()), (model.dim(), 10));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod action_values;
mod agent;
mod corruption;
mod environment;
mod exploration;
pub mod games;
pub mod gymnasium;
mod learning_rule;
mod player;
mod replay_memory;
mod saved_agent;
mod settings;
mod state_stack;

pub use action_values::{ActionValues, NetworkError};
pub use agent::{AgentError, DqnAgent, LearningOutcome};
pub use corruption::ObservationNoise;
pub use environment::{Environment, EnvironmentError, EnvironmentStep, EpisodeEnd, FrameShape};
pub use exploration::ExplorationSchedule;
pub use games::GridGame;
pub use learning_rule::LearningRule;
pub use player::Player;
pub use replay_memory::{Experience, ReplayMemory, TransitionSample};
pub use saved_agent::SavedAgentError;
pub use settings::{DqnSettings, TargetNetwork};
