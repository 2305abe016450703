//! Engines: where the games of a trial are played.

use std::path::PathBuf;

use evenhand_agents::gymnasium::{GymnasiumProcess, SCRIPT};
use evenhand_agents::{DqnSettings, Environment, EnvironmentError, GridGame};
use evenhand_models::{LoadOptions, Model, shipped};
use serde::{Deserialize, Serialize};

use crate::sim::SimulationError;

/// An engine of games.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, clap::ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum GameEngine {
    /// Games on a grid of 10 × 10 cells, within this program
    #[default]
    Grid,
    /// The Arcade Learning Environment, as a process of Python with ale-py
    Atari,
}

/// A game on an engine.
#[derive(Debug, Clone)]
pub struct GameSource {
    /// The game.
    pub game: GridGame,
    /// Its engine.
    pub engine: GameEngine,
    /// The Python that has ale-py.
    pub python: PathBuf,
}

impl GameSource {
    /// The game with its chance.
    pub fn environment(&self, seed: u64) -> Result<Box<dyn Environment>, EnvironmentError> {
        match self.engine {
            GameEngine::Grid => Ok(Box::new(self.game.environment(seed))),
            GameEngine::Atari => {
                let python = self.python.display().to_string();
                let seed = (seed % (1 << 31)).to_string();
                let words = [&python, "-c", SCRIPT, "atari", self.game.name(), "--seed", &seed];
                let command = words.map(str::to_owned).into();
                let name = format!("{python}, atari {}", self.game.name());
                Ok(Box::new(GymnasiumProcess::start(name, command)?))
            }
        }
    }

    /// The network that learns it.
    pub fn onnx(&self) -> &'static [u8] {
        match (self.engine, self.game) {
            (GameEngine::Atari, _) => shipped::DQN_NATURE,
            (GameEngine::Grid, GridGame::SpaceInvaders) => shipped::DQN_MINATAR_6,
            (GameEngine::Grid, GridGame::Breakout | GridGame::Pong) => shipped::DQN_MINATAR_4,
        }
    }

    /// The network, loaded.
    pub fn model(&self) -> Result<Model, SimulationError> {
        Ok(Model::load(self.onnx(), &LoadOptions::default())?)
    }

    /// The settings with which an agent learns it alone: as published by Young and Tian, or by Mnih et al.
    pub fn settings(&self) -> DqnSettings {
        match self.engine {
            GameEngine::Grid => DqnSettings::minatar(),
            GameEngine::Atari => DqnSettings::atari(),
        }
    }
}
