//! Transitions of a grid game for given actions and random choices, for comparison with another implementation.
//!
//! `game_transitions GAME` reads lines on stdin and answers each with one on stdout: `begin START` begins an episode, and
//! `act ACTION CHANCE` takes one step. The answer is the reward, 1 if the episode is over, and the frame: a digit for each
//! cell of each channel, row by row.

use std::io::{self, BufRead, BufWriter, Write};
use std::process::ExitCode;

use evenhand_agents::{Environment, GridGame};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("game_transitions: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).ok_or("name a game")?;
    let mut game = name.parse::<GridGame>()?.environment(0);
    let mut frame = vec![0; game.frame_shape().bytes()];
    let mut out = BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (reward, over) = match line.split(' ').collect::<Vec<_>>()[..] {
            ["begin", start] => {
                game.begin(start.parse()?, &mut frame);
                (0.0, 0)
            }
            ["act", action, chance] => {
                let step = game.step_with(action.parse()?, chance.parse()?, &mut frame)?;
                (step.reward, u8::from(step.end.is_over()))
            }
            _ => return Err(format!("no request: {line:?}").into()),
        };
        let cells: String = frame.iter().map(|cell| if *cell == 0 { '0' } else { '1' }).collect();
        writeln!(out, "{reward} {over} {cells}")?;
        out.flush()?;
    }
    Ok(())
}
