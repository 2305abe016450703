//! Games on a grid of 10 × 10 cells: Breakout and Space Invaders by the published rules of MinAtar (Young and Tian 2019),
//! and a Pong of the same kind.
//!
//! A frame has one channel for each kind of thing, with 255 where there is one. All games have the six actions of MinAtar:
//! stay, left, up, right, down, fire. [`GridRules`] are a game without chance, but for the choice that an episode begins
//! with; [`GridEnvironment`] adds chance: an action is replaced by the one before with probability 0.1.

mod breakout;
mod pong;
mod space_invaders;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::environment::{Environment, EnvironmentError, EnvironmentStep, EpisodeEnd, FrameShape};

pub use self::breakout::GridBreakout;
pub use self::pong::GridPong;
pub use self::space_invaders::GridSpaceInvaders;

/// Cells of a side.
pub const SIDE: usize = 10;
/// The last row and column.
const LAST: usize = SIDE - 1;
/// Probability that an action is replaced by the one before, as published.
pub const STICKY_PROBABILITY: f64 = 0.1;

/// The actions of all grid games.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GridAction {
    /// Does nothing.
    Stay,
    /// Moves left.
    Left,
    /// Moves up.
    Up,
    /// Moves right.
    Right,
    /// Moves down.
    Down,
    /// Fires.
    Fire,
}

impl GridAction {
    /// All actions, in the order of their numbers.
    pub const ALL: [Self; 6] = [Self::Stay, Self::Left, Self::Up, Self::Right, Self::Down, Self::Fire];
}

/// The rules of a game: everything but chance.
pub trait GridRules: Send {
    /// Kinds of things, one channel each.
    fn channels(&self) -> usize;

    /// Number of ways in which an episode can begin.
    fn starts(&self) -> usize;

    /// Begins an episode in one of these ways.
    fn begin(&mut self, start: usize);

    /// One step: the reward, and whether the episode is over.
    fn act(&mut self, action: GridAction) -> (f32, bool);

    /// Draws the things into a frame of zeros.
    fn draw(&self, frame: &mut GridFrame<'_>);
}

/// A frame being drawn.
pub struct GridFrame<'a>(&'a mut [u8]);

impl<'a> GridFrame<'a> {
    /// A frame of zeros.
    pub fn clear(frame: &'a mut [u8]) -> Self {
        frame.fill(0);
        Self(frame)
    }

    /// Puts a thing of this kind into a cell; a cell outside the grid stays undrawn.
    pub fn put(&mut self, channel: usize, row: usize, column: usize) {
        if row < SIDE
            && column < SIDE
            && let Some(cell) = self.0.get_mut((channel * SIDE + row) * SIDE + column)
        {
            *cell = u8::MAX;
        }
    }

    fn put_all(&mut self, channel: usize, cells: &CellSet) {
        for (row, columns) in cells.rows.iter().enumerate() {
            (0..SIDE)
                .filter(|column| columns >> column & 1 == 1)
                .for_each(|column| self.put(channel, row, column));
        }
    }
}

/// A set of cells: a bit for each column of each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct CellSet {
    rows: [u16; SIDE],
}

impl CellSet {
    /// A full block of rows and columns.
    fn block(rows: std::ops::Range<usize>, columns: std::ops::Range<usize>) -> Self {
        let mut set = Self::default();
        let bits = columns.fold(0, |bits, column| bits | 1 << column);
        set.rows[rows].fill(bits);
        set
    }

    fn has(&self, row: usize, column: usize) -> bool {
        self.rows[row] >> column & 1 == 1
    }

    fn add(&mut self, row: usize, column: usize) {
        self.rows[row] |= 1 << column;
    }

    fn remove(&mut self, row: usize, column: usize) {
        self.rows[row] &= !(1 << column);
    }

    fn count(&self) -> u32 {
        self.rows.iter().map(|columns| columns.count_ones()).sum()
    }

    fn has_column(&self, column: usize) -> bool {
        self.rows.iter().any(|columns| columns >> column & 1 == 1)
    }
}

/// A grid game by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GridGame {
    /// A paddle, a ball and three rows of bricks.
    Breakout,
    /// Two paddles and a ball.
    Pong,
    /// A cannon below and aliens above.
    SpaceInvaders,
}

impl GridGame {
    /// All games.
    pub const ALL: [Self; 3] = [Self::Breakout, Self::Pong, Self::SpaceInvaders];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Breakout => "breakout",
            Self::Pong => "pong",
            Self::SpaceInvaders => "space-invaders",
        }
    }

    /// Its rules, before the first episode.
    pub fn rules(self) -> Box<dyn GridRules> {
        match self {
            Self::Breakout => Box::new(GridBreakout::default()),
            Self::Pong => Box::new(GridPong::default()),
            Self::SpaceInvaders => Box::new(GridSpaceInvaders::default()),
        }
    }

    /// The game with its chance.
    pub fn environment(self, seed: u64) -> GridEnvironment {
        GridEnvironment::new(self.rules(), seed)
    }
}

impl std::str::FromStr for GridGame {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|game| game.name() == name).ok_or_else(|| {
            format!("no grid game is called {name:?}; there are breakout, pong and space-invaders")
        })
    }
}

/// A game with chance: how episodes begin, and actions that repeat the one before.
pub struct GridEnvironment {
    rules: Box<dyn GridRules>,
    generator: ChaCha8Rng,
    last_action: usize,
}

impl GridEnvironment {
    /// A game before its first episode.
    pub fn new(rules: Box<dyn GridRules>, seed: u64) -> Self {
        Self { rules, generator: ChaCha8Rng::seed_from_u64(seed), last_action: 0 }
    }

    /// Begins an episode in one of its ways.
    pub fn begin(&mut self, start: usize, frame: &mut [u8]) {
        self.rules.begin(start);
        self.rules.draw(&mut GridFrame::clear(frame));
    }

    /// One step whose chance is a number drawn uniformly from [0, 1): below [`STICKY_PROBABILITY`], the action before is
    /// repeated, also over the end of an episode.
    pub fn step_with(
        &mut self,
        action: usize,
        chance: f64,
        frame: &mut [u8],
    ) -> Result<EnvironmentStep, EnvironmentError> {
        let actions = GridAction::ALL.len();
        let action = if chance < STICKY_PROBABILITY { self.last_action } else { action };
        let Some(taken) = GridAction::ALL.get(action) else {
            return Err(EnvironmentError::Action { action, actions });
        };
        self.last_action = action;
        let (reward, is_over) = self.rules.act(*taken);
        self.rules.draw(&mut GridFrame::clear(frame));
        let end = if is_over { EpisodeEnd::Terminated } else { EpisodeEnd::Continues };
        Ok(EnvironmentStep { reward, end })
    }
}

impl Environment for GridEnvironment {
    fn frame_shape(&self) -> FrameShape {
        FrameShape { channels: self.rules.channels(), rows: SIDE, columns: SIDE, stacked: 1 }
    }

    fn actions(&self) -> usize {
        GridAction::ALL.len()
    }

    fn reset(&mut self, frame: &mut [u8]) -> Result<(), EnvironmentError> {
        let start = self.generator.random_range(0..self.rules.starts());
        self.begin(start, frame);
        Ok(())
    }

    fn step(&mut self, action: usize, frame: &mut [u8]) -> Result<EnvironmentStep, EnvironmentError> {
        let chance = self.generator.random();
        self.step_with(action, chance, frame)
    }
}
