//! Breakout on the grid.
//!
//! A paddle of one cell on the lowest row, a ball that moves one cell diagonally in every step, and three rows of bricks.
//! Each brick counts one; when the last is gone and the ball comes down, three new rows stand there. The ball bounces off
//! walls and bricks. It comes back from the paddle mirrored when the paddle is where the ball came from, and turns back the
//! way it came when the paddle is where the ball goes; otherwise the episode is over. A ball that hits bricks in two steps
//! in a row breaks the first one only and passes through the second.

use super::{CellSet, GridAction, GridFrame, GridRules, LAST, SIDE};

const PADDLE: usize = 0;
const BALL: usize = 1;
const TRAIL: usize = 2;
const BRICK: usize = 3;

/// The rows of bricks.
const BRICK_ROWS: std::ops::Range<usize> = 1..4;
/// The row in which the ball starts.
const START_ROW: usize = 3;

/// The state of the game.
#[derive(Debug, Clone)]
pub struct GridBreakout {
    paddle: usize,
    /// Row and column of the ball.
    ball: (usize, usize),
    /// Row and column of the ball one step before.
    trail: (usize, usize),
    moves_down: bool,
    moves_right: bool,
    bricks: CellSet,
    /// The ball is still passing bricks after it broke one.
    passing: bool,
    is_over: bool,
}

impl Default for GridBreakout {
    fn default() -> Self {
        let start = (START_ROW, 0);
        Self {
            paddle: 4,
            ball: start,
            trail: start,
            moves_down: true,
            moves_right: true,
            bricks: CellSet::block(BRICK_ROWS, 0..SIDE),
            passing: false,
            is_over: false,
        }
    }
}

impl GridBreakout {
    /// The column after a step, turning at the walls.
    fn next_column(&mut self) -> usize {
        let column = self.ball.1;
        match (self.moves_right, column) {
            (true, LAST) | (false, 0) => {
                self.moves_right = !self.moves_right;
                column
            }
            (true, _) => column + 1,
            (false, _) => column - 1,
        }
    }

    /// The ball comes down to the paddle's row; the row where it is then.
    fn reach_paddle(&mut self, column: usize) -> usize {
        if self.bricks == CellSet::default() {
            self.bricks = CellSet::block(BRICK_ROWS, 0..SIDE);
        }
        if self.ball.1 == self.paddle {
            self.moves_down = !self.moves_down;
        } else if column == self.paddle {
            self.moves_down = !self.moves_down;
            self.moves_right = !self.moves_right;
        } else {
            self.is_over = true;
            return LAST;
        }
        self.ball.0
    }
}

impl GridRules for GridBreakout {
    fn channels(&self) -> usize {
        4
    }

    /// The ball starts on the left or on the right.
    fn starts(&self) -> usize {
        2
    }

    fn begin(&mut self, start: usize) {
        let column = if start == 0 { 0 } else { LAST };
        let ball = (START_ROW, column);
        *self = Self { ball, trail: ball, moves_right: start == 0, ..Self::default() };
    }

    fn act(&mut self, action: GridAction) -> (f32, bool) {
        if self.is_over {
            return (0.0, true);
        }
        match action {
            GridAction::Left => self.paddle = self.paddle.saturating_sub(1),
            GridAction::Right => self.paddle = (self.paddle + 1).min(LAST),
            GridAction::Stay | GridAction::Up | GridAction::Down | GridAction::Fire => {}
        }
        self.trail = self.ball;
        let column = self.next_column();
        let (mut reward, mut passes) = (0.0, false);
        let row = match (self.moves_down, self.ball.0) {
            (false, 0) => {
                self.moves_down = true;
                0
            }
            (down, row) => {
                let next = if down { row + 1 } else { row - 1 };
                if self.bricks.has(next, column) {
                    passes = true;
                    if self.passing {
                        next
                    } else {
                        reward = 1.0;
                        self.bricks.remove(next, column);
                        self.moves_down = !down;
                        row
                    }
                } else if next == LAST {
                    self.reach_paddle(column)
                } else {
                    next
                }
            }
        };
        self.passing = passes;
        self.ball = (row, column);
        (reward, self.is_over)
    }

    fn draw(&self, frame: &mut GridFrame<'_>) {
        frame.put(PADDLE, LAST, self.paddle);
        frame.put(BALL, self.ball.0, self.ball.1);
        frame.put(TRAIL, self.trail.0, self.trail.1);
        frame.put_all(BRICK, &self.bricks);
    }
}
