//! `evenhand-fleet play`.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

use evenhand_agents::{Environment, GridGame, Player};
use evenhand_program::exit::Exit;

use super::{FleetError, signal};
use crate::data::AsPublished;
use crate::experiment::games::{self, GameEngine, GamePicture, GameRecord, GameRound, GameSetup, GameSource};
use crate::experiment::variant::Variant;
use crate::scenario::AgentCorruption;
use crate::sim::{self, Interrupt, SimulationError};

/// Examples of use.
pub(super) const HELP: &str = "\
Examples:
  evenhand-fleet play                          Breakout; agents with more and less noise on their rewards
  evenhand-fleet play --game pong --corruption state-noise
  evenhand-fleet play --rounds 200 --seed 7    longer, another game";

/// Frames of an episode of which some are shown.
const FILM_FRAMES: usize = 400;
/// Rounds between two lines where there is no terminal.
const ROUNDS_A_LINE: u32 = 10;
/// Width of a board in the terminal, with its gap.
const BOARD: usize = 24;
/// Colours of the things in a game, by channel.
const COLOURS: [u8; 7] = [0, 39, 220, 113, 209, 255, 203];

/// Flags of `evenhand-fleet play`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PlayArgs {
    /// Game: breakout, pong, space-invaders
    #[arg(long, default_value = "breakout", value_name = "G")]
    game: GridGame,
    /// What makes agents differ
    #[arg(long, value_enum, default_value_t = AgentCorruption::RewardNoise)]
    corruption: AgentCorruption,
    /// How agents are measured and drawn
    #[arg(long, value_enum, default_value_t = Variant::PaperCredit)]
    strategy: Variant,
    /// Rounds
    #[arg(long, default_value_t = 100, value_name = "T")]
    rounds: u32,
    /// Decisions of an agent in a round
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    decisions: u64,
    /// Decisions between two gradient steps
    #[arg(long, default_value_t = 4, value_name = "N")]
    train_every: u64,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl PlayArgs {
    fn setup(&self) -> GameSetup {
        let (engine, as_published) = (GameEngine::Grid, AsPublished::Paper);
        let base =
            GameSetup::published(self.game, engine, self.corruption, self.strategy, as_published, self.seed);
        GameSetup {
            rounds: self.rounds,
            decisions: self.decisions,
            train_every: self.train_every,
            // Settled sooner than as published: the demo is short.
            window: 10,
            alpha: 0.5,
            ..base
        }
    }
}

/// Shows agents that learn a game together.
pub(super) fn run(args: &PlayArgs) -> Result<Exit, FleetError> {
    let setup = args.setup();
    setup.check()?;
    let source = GameSource { game: setup.task, engine: setup.engine, python: PathBuf::new() };
    let (runtime, interrupt) = (sim::runtime()?, Interrupt::default());
    runtime.spawn(signal::watch(interrupt.clone()));
    let mut stage = Stage::new(&setup, &source)?;
    let mut failure = None;
    let record = games::run(&setup, &source, &interrupt, &mut |round, held| {
        if let Err(error) = stage.show(round, held) {
            failure.get_or_insert(error);
            interrupt.raise();
        }
    })?;
    match (failure, record) {
        (Some(error), _) => Err(error),
        (None, None) => Ok(Exit::Interrupted),
        (None, Some(record)) => {
            let text = ending(&setup, &record);
            io::stdout().lock().write_all(text.as_bytes()).map_err(FleetError::Output)?;
            Ok(Exit::Ok)
        }
    }
}

/// The boards and standings in a terminal; lines where there is none.
struct Stage<'a> {
    setup: &'a GameSetup,
    player: Player,
    shape: evenhand_agents::FrameShape,
    is_terminal: bool,
    lines: usize,
}

impl<'a> Stage<'a> {
    fn new(setup: &'a GameSetup, source: &GameSource) -> Result<Self, FleetError> {
        let environment = setup.task.environment(setup.seed);
        let shape = environment.frame_shape();
        let frames = u32::try_from(FILM_FRAMES).unwrap_or(u32::MAX);
        let player =
            Player::new(Box::new(environment), &source.model()?, frames).map_err(SimulationError::Model)?;
        Ok(Self { setup, player, shape, is_terminal: io::stdout().is_terminal(), lines: 0 })
    }

    fn show(&mut self, round: &GameRound, held: &[Arc<[f32]>]) -> Result<(), FleetError> {
        let text = if self.is_terminal {
            self.boards(round, held)?
        } else if round.round.is_multiple_of(ROUNDS_A_LINE) || round.round == 1 {
            let scores: Vec<String> = round.scores.iter().map(|score| format!("{score:.1}")).collect();
            format!(
                "round {:>3}: drawn {:?}, scores {}\n",
                round.round,
                named(&round.drawn),
                scores.join(" ")
            )
        } else {
            return Ok(());
        };
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(FleetError::Output)
    }

    /// One board a node: a moment of an episode with the model that it holds.
    fn boards(&mut self, round: &GameRound, held: &[Arc<[f32]>]) -> Result<String, FleetError> {
        let mut boards = Vec::new();
        for (node, weights) in held.iter().enumerate() {
            let seed = self.setup.seed + u64::from(round.round) * 100 + node as u64;
            let (frames, _) =
                self.player.filmed(weights, FILM_FRAMES, 0.02, seed).map_err(SimulationError::Agent)?;
            let shown = frames.get(frames.len() * 3 / 4).cloned().unwrap_or_default();
            boards.push(GamePicture::of(&shown, self.shape).rows());
        }
        let mut text = String::new();
        if self.lines > 0 {
            let _written = write!(text, "\x1b[{}A", self.lines);
        }
        let mut lines = vec![format!(
            "{}: round {} of {}, {}",
            self.setup.task.name(),
            round.round,
            self.setup.rounds,
            if round.drawn.len() == self.setup.nodes { "everybody is measured" } else { "two are drawn" }
        )];
        let values = self.setup.values();
        lines.push(cells(
            values.iter().enumerate().map(|(node, value)| format!("agent {}  ζ {value:.2}", node + 1)),
        ));
        for row in 0..boards.first().map_or(0, Vec::len) {
            let mut line = String::new();
            for board in &boards {
                for kind in &board[row] {
                    let colour = COLOURS[(*kind as usize).min(COLOURS.len() - 1)];
                    match kind {
                        0 => line.push_str("\x1b[48;5;234m  "),
                        _ => {
                            let _written = write!(line, "\x1b[48;5;{colour}m  ");
                        }
                    }
                }
                line.push_str("\x1b[0m");
                line.push_str(&" ".repeat(BOARD.saturating_sub(2 * board[row].len())));
            }
            lines.push(line);
        }
        lines.push(cells(round.scores.iter().map(|score| format!("score {score:.1}"))));
        lines.push(cells(round.standings.iter().map(|standing| format!("standing {standing:.3}"))));
        let drawn = |node: usize| if round.drawn.contains(&node) { "▲ has the model" } else { "" };
        lines.push(cells((0..self.setup.nodes).map(|node| drawn(node).to_owned())));
        lines.push(cells(round.staleness.iter().map(|rounds| format!("model is {rounds} old"))));
        self.lines = lines.len();
        lines.iter().for_each(|line| {
            let _written = writeln!(text, "{line}\x1b[K");
        });
        Ok(text)
    }
}

fn cells(texts: impl Iterator<Item = String>) -> String {
    texts.map(|text| format!("{text:<BOARD$}")).collect()
}

/// Nodes counted from 1.
fn named(nodes: &[usize]) -> Vec<usize> {
    nodes.iter().map(|node| node + 1).collect()
}

fn ending(setup: &GameSetup, record: &GameRecord) -> String {
    let mut text = String::from("\nagent   ζ      times drawn   mean score of its model   standing\n");
    for (node, value) in setup.values().iter().enumerate() {
        let of = |figures: &[f64]| figures.get(node).copied().unwrap_or(0.0);
        let _written = writeln!(
            text,
            "{:<7} {value:<6.2} {:>11} {:>25.2} {:>10.3}",
            node + 1,
            record.drawn.get(node).copied().unwrap_or(0),
            of(&record.scores),
            of(&record.standings)
        );
    }
    match record.drawn_from {
        Some(from) => {
            let _written = writeln!(text, "\nEverybody was measured until round {}.", from.saturating_sub(1));
        }
        None => text.push_str("\nStandings were not settled yet: everybody took part to the end.\n"),
    }
    if let Some(rho) = record.rho_standing {
        let _written = writeln!(text, "ρ(standing, ζ) = {rho:.2}; −1 is what is wanted.");
    }
    text
}
