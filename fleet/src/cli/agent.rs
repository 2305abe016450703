//! `evenhand-fleet agent`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use evenhand_agents::{
    AgentError, DqnAgent, DqnSettings, ExplorationSchedule, GridGame, LearningRule, ObservationNoise, Player,
    TargetNetwork,
};
use evenhand_program::atomic;
use evenhand_program::exit::Exit;

use super::{FleetError, signal};
use crate::experiment::games::{GameEngine, GameSource};
use crate::sim::{self, Interrupt, SimulationError};

/// Examples of use.
pub(super) const HELP: &str = "\
Examples:
  evenhand-fleet agent --game breakout --frames 400000
  evenhand-fleet agent --game space-invaders --frames 1000000 --state invaders.agent
  evenhand-fleet agent --game pong --engine atari --python venv/bin/python --frames 100000

With --state, the agent's memory, weights and steps are stored there now and then, and the same command
goes on from there.";

/// Lines of the learning curve.
const LINES: u64 = 20;
/// Episodes of random play that it is compared with: on the grid, and of Atari, where one takes seconds.
const RANDOM_EPISODES: u32 = 100;
const RANDOM_EPISODES_OF_ATARI: u32 = 5;

/// Flags of `evenhand-fleet agent`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct AgentArgs {
    /// Game: breakout, pong, space-invaders
    #[arg(long, default_value = "breakout", value_name = "G")]
    game: GridGame,
    /// Engine of the game
    #[arg(long, value_enum, default_value_t)]
    engine: GameEngine,
    /// Decisions to learn in
    #[arg(long, default_value_t = 400_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    frames: u64,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Decisions between two gradient steps [default: 1, Atari 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    train_every: Option<u64>,
    /// Step size, by Adam [default: RMSprop with 0.00025 as published for grids, Adam with 0.00002 for Atari]
    #[arg(long, value_name = "ETA")]
    learning_rate: Option<f32>,
    /// Transitions in memory [default: 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    memory: Option<u32>,
    /// Without a target network
    #[arg(long)]
    no_target: bool,
    /// Decisions in which ε falls from 1 to 0.1 [default: 100000, Atari 850000]
    #[arg(long, value_name = "N")]
    exploration: Option<u64>,
    /// File of the agent's state, from which it goes on
    #[arg(long, value_name = "PATH")]
    state: Option<PathBuf>,
    /// The Python that has ale-py, for --engine atari
    #[arg(long, default_value = "python3", value_name = "PATH")]
    python: PathBuf,
}

impl AgentArgs {
    fn settings(&self, base: DqnSettings) -> DqnSettings {
        let exploration = match self.exploration {
            Some(decisions) => ExplorationSchedule { decisions, ..base.exploration },
            None => base.exploration,
        };
        DqnSettings {
            train_every: self.train_every.unwrap_or(base.train_every),
            memory: self.memory.map_or(base.memory, |memory| memory as usize),
            target: if self.no_target { TargetNetwork::None } else { base.target },
            rule: self.learning_rate.map_or(base.rule, |learning_rate| LearningRule::Adam { learning_rate }),
            exploration,
            ..base
        }
    }
}

/// Lets an agent learn and prints its learning curve.
pub(super) fn run(args: &AgentArgs) -> Result<Exit, FleetError> {
    let source = GameSource { game: args.game, engine: args.engine, python: args.python.clone() };
    let failed = |error: AgentError| FleetError::from(SimulationError::Agent(error));
    let environment = |seed: u64| source.environment(seed).map_err(|error| failed(error.into()));
    let model = source.model()?;
    let weights = model.initial_weights();
    let settings = args.settings(source.settings());
    let random_episodes = match args.engine {
        GameEngine::Grid => RANDOM_EPISODES,
        GameEngine::Atari => RANDOM_EPISODES_OF_ATARI,
    };
    let random = Player::new(environment(args.seed)?, &model, settings.episode_decisions_max)
        .map_err(|error| failed(error.into()))?
        .mean_score(&weights, random_episodes, 1.0, args.seed)
        .map_err(failed)?;
    let noise = ObservationNoise::default();
    let mut agent = DqnAgent::new(settings, environment(args.seed)?, noise, &model, &weights, args.seed)
        .map_err(failed)?;
    if let Some(path) = &args.state {
        restore(&mut agent, path)?;
    }
    let (runtime, interrupt) = (sim::runtime()?, Interrupt::default());
    runtime.spawn(signal::watch(interrupt.clone()));
    let (begun, first) = (Instant::now(), agent.decisions());
    say(&format!(
        "random play scores {random:.2} (mean of {random_episodes} episodes); {} from frame {first} on",
        args.game.name()
    ))?;
    while agent.decisions() < args.frames && !interrupt.is_raised() {
        agent.live().map_err(failed)?;
        if let Some(notice) = agent.notice() {
            eprintln!("{notice}");
        }
        if agent.decisions().is_multiple_of((args.frames / LINES).max(1)) {
            let seconds = begun.elapsed().as_secs_f64();
            say(&format!(
                "frame {:>8}  score {:>6}  random {random:.2}  ε {:.2}  {:.0} frames/s  {:.0} s",
                agent.decisions(),
                agent.mean_score().map_or("–".into(), |score| format!("{score:.2}")),
                agent.exploration(),
                (agent.decisions() - first) as f64 / seconds,
                seconds
            ))?;
            if let Some(path) = &args.state {
                save(&agent, path)?;
            }
        }
    }
    if let Some(path) = &args.state {
        save(&agent, path)?;
    }
    Ok(if agent.decisions() < args.frames { Exit::Interrupted } else { Exit::Ok })
}

fn say(line: &str) -> Result<(), FleetError> {
    writeln!(io::stdout().lock(), "{line}").map_err(FleetError::Output)
}

fn restore(agent: &mut DqnAgent, path: &Path) -> Result<(), FleetError> {
    let fail = |cause: String| FleetError::AgentState { path: path.to_owned(), cause };
    match fs::read(path) {
        Ok(saved) => agent.restore(&saved).map_err(|error| fail(error.to_string())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(fail(error.to_string())),
    }
}

fn save(agent: &DqnAgent, path: &Path) -> Result<(), FleetError> {
    atomic::replace(path, &agent.save())
        .map_err(|cause| FleetError::AgentState { path: path.to_owned(), cause: cause.to_string() })
}
