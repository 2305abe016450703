//! A lone agent's learning curve: `lone_agent GAME FRAMES SEED`, with the published settings of MinAtar.

use std::process::ExitCode;
use std::time::Instant;

use evenhand_agents::{DqnAgent, DqnSettings, GridGame, ObservationNoise};
use evenhand_models::{LoadOptions, Model, shipped};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lone_agent: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [game, frames, seed] = &arguments[..] else { return Err("lone_agent GAME FRAMES SEED".into()) };
    let (game, frames, seed): (GridGame, u64, u64) = (game.parse()?, frames.parse()?, seed.parse()?);
    let file = if game == GridGame::SpaceInvaders { shipped::DQN_MINATAR_6 } else { shipped::DQN_MINATAR_4 };
    let model = Model::load(file, &LoadOptions::default())?;
    let environment = Box::new(game.environment(seed));
    let noise = ObservationNoise::default();
    let weights = model.initial_weights();
    let mut agent = DqnAgent::new(DqnSettings::minatar(), environment, noise, &model, &weights, seed)?;
    let begun = Instant::now();
    while agent.decisions() < frames {
        agent.live()?;
        if agent.decisions().is_multiple_of(frames / 40) {
            println!(
                "{} frames, {} episodes, mean score of the last 100: {:.2}, epsilon {:.2}, {:.0} s",
                agent.decisions(),
                agent.episodes(),
                agent.mean_score().unwrap_or(0.0),
                agent.exploration(),
                begun.elapsed().as_secs_f64()
            );
        }
    }
    Ok(())
}
