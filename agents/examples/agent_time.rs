//! Times of an agent's parts, for `agents/bench/compare.py`: one JSON object on stdout.
//!
//!     cargo run --release -p evenhand-agents --example agent_time -- breakout
//!
//! The parts are a step of the game, choosing the best action in a state, and learning: sampling 32 transitions, the target
//! network on their next states, the gradient, and the optimiser's step. Processor time, so that other work on the machine
//! does not count; `pixels` has random frames of Atari's shape in place of a game.

use std::process::ExitCode;

use evenhand_agents::{
    DqnAgent, DqnSettings, Environment, EnvironmentError, EnvironmentStep, EpisodeEnd, ExplorationSchedule,
    FrameShape, GridGame, ObservationNoise,
};
use evenhand_models::{LoadOptions, Model, shipped};

/// Frames of Atari's shape, without a game behind them.
struct Pixels(u32);

impl Environment for Pixels {
    fn frame_shape(&self) -> FrameShape {
        FrameShape { channels: 1, rows: 84, columns: 84, stacked: 4 }
    }

    fn actions(&self) -> usize {
        6
    }

    fn reset(&mut self, frame: &mut [u8]) -> Result<(), EnvironmentError> {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        frame.iter_mut().zip(0u32..).for_each(|(byte, at)| *byte = (at.wrapping_mul(self.0) >> 24) as u8);
        Ok(())
    }

    fn step(&mut self, action: usize, frame: &mut [u8]) -> Result<EnvironmentStep, EnvironmentError> {
        self.reset(frame)?;
        Ok(EnvironmentStep { reward: action as f32 - 2.0, end: EpisodeEnd::Continues })
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("agent_time: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "breakout".to_owned());
    let game = || -> Result<Box<dyn Environment>, String> {
        if name == "pixels" {
            Ok(Box::new(Pixels(1)))
        } else {
            Ok(Box::new(name.parse::<GridGame>()?.environment(1)))
        }
    };
    let (file, rounds) = match game()?.frame_shape() {
        FrameShape { rows: 84, .. } => (shipped::DQN_NATURE, 30),
        FrameShape { channels: 6, .. } => (shipped::DQN_MINATAR_6, 1_500),
        _ => (shipped::DQN_MINATAR_4, 1_500),
    };
    let model = Model::load(file, &LoadOptions::default())?;
    let weights = model.initial_weights();
    let agent = |epsilon: f64, train_every: u64| -> Result<DqnAgent, Box<dyn std::error::Error>> {
        let settings = DqnSettings {
            memory: 2_000,
            replay_start: 500,
            exploration: ExplorationSchedule::constant(epsilon),
            train_every,
            ..DqnSettings::minatar()
        };
        let mut agent = DqnAgent::new(settings, game()?, ObservationNoise::default(), &model, &weights, 1)?;
        agent.fill_memory()?;
        Ok(agent)
    };
    let never = u64::MAX;
    let mut random = agent(1.0, never)?;
    let step_us = best(20 * rounds, || random.live().map(drop))?;
    let mut greedy = agent(0.0, never)?;
    let decide_us = best(rounds, || greedy.live().map(drop))? - step_us;
    let mut learner = agent(1.0, 1)?;
    let learn_us = best(rounds, || learner.live().map(drop))? - step_us;
    println!(
        "{{\"game\": \"{name}\", \"step_us\": {step_us:.2}, \"decide_us\": {decide_us:.1}, \"learn_us\": {learn_us:.1}}}"
    );
    Ok(())
}

/// Microseconds of processor time of one run: the best mean of several stretches, after one to warm up.
fn best<E>(rounds: u32, mut run: impl FnMut() -> Result<(), E>) -> Result<f64, Box<dyn std::error::Error>>
where
    Box<dyn std::error::Error>: From<E>,
{
    let mut best = f64::INFINITY;
    for stretch in 0..6 {
        let begun = processor_nanoseconds()?;
        for _ in 0..rounds {
            run()?;
        }
        let took = (processor_nanoseconds()? - begun) / f64::from(rounds) / 1e3;
        best = if stretch == 0 { best } else { best.min(took) };
    }
    Ok(best)
}

/// Time this process has spent on a processor; the kernel updates it when the process is switched out, hence the yield.
fn processor_nanoseconds() -> Result<f64, Box<dyn std::error::Error>> {
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    Ok(text.split(' ').next().ok_or("no time in schedstat")?.parse()?)
}
