//! Pong on the grid, of the same kind as MinAtar's games, which have none.
//!
//! Paddles of three cells stand on the left (the opponent's) and on the right (the agent's), and move up and down. The ball
//! moves one cell diagonally in every step and bounces off the upper and lower wall. The upper cell of a paddle sends it
//! back upwards, the lower one downwards, the middle one mirrors it. Who misses gives the other a point: the reward is 1 or
//! −1. The ball then starts in the middle, towards the loser, from a row and in a direction that follow from the number of
//! points; the episode is over when one side has five. While the ball comes towards it, the opponent follows its row by one
//! cell in two of three steps, so that it can be outplayed.

use super::{GridAction, GridFrame, GridRules, LAST};

const OWN_PADDLE: usize = 0;
const BALL: usize = 1;
const TRAIL: usize = 2;
const OPPONENT: usize = 3;

/// Points that end an episode.
pub(super) const POINTS: u32 = 5;
/// Rows of a paddle's middle cell.
const PADDLE_MIN: usize = 1;
const PADDLE_MAX: usize = LAST - 1;
/// The opponent stands still in one of so many steps.
const OPPONENT_PAUSE: u32 = 3;
/// The columns from which the ball starts to the left and to the right.
const START_COLUMNS: (usize, usize) = (5, 4);

/// The state of the game.
#[derive(Debug, Clone)]
pub struct GridPong {
    /// Row of the middle cell.
    own: usize,
    opponent: usize,
    /// Row and column of the ball.
    ball: (usize, usize),
    trail: (usize, usize),
    moves_down: bool,
    moves_right: bool,
    own_points: u32,
    opponent_points: u32,
    /// Steps in which the opponent wanted to move.
    opponent_steps: u32,
    first_row: usize,
}

impl Default for GridPong {
    fn default() -> Self {
        let mut game = Self {
            own: 5,
            opponent: 4,
            ball: (0, 0),
            trail: (0, 0),
            moves_down: true,
            moves_right: true,
            own_points: 0,
            opponent_points: 0,
            opponent_steps: 0,
            first_row: 4,
        };
        game.serve(true);
        game
    }
}

impl GridPong {
    fn points(&self) -> u32 {
        self.own_points + self.opponent_points
    }

    fn is_over(&self) -> bool {
        self.own_points.max(self.opponent_points) == POINTS
    }

    /// Puts the ball into the middle.
    fn serve(&mut self, to_right: bool) {
        let points = self.points() as usize;
        let column = if to_right { START_COLUMNS.1 } else { START_COLUMNS.0 };
        // Three rows further each time: all rows but the outer ones, over and over.
        let row = PADDLE_MIN + (self.first_row + 3 * points) % PADDLE_MAX;
        (self.ball, self.trail) = ((row, column), (row, column));
        self.moves_right = to_right;
        self.moves_down = points.is_multiple_of(2);
    }

    fn follow(&mut self) {
        if self.moves_right {
            return;
        }
        self.opponent_steps = self.opponent_steps.wrapping_add(1);
        if !self.opponent_steps.is_multiple_of(OPPONENT_PAUSE) {
            self.opponent = towards(self.opponent, self.ball.0);
        }
    }

    /// The row after a step, turning at the walls.
    fn next_row(&mut self) -> usize {
        let row = self.ball.0;
        match (self.moves_down, row) {
            (true, LAST) | (false, 0) => {
                self.moves_down = !self.moves_down;
                row
            }
            (true, _) => row + 1,
            (false, _) => row - 1,
        }
    }

    /// Bounces the ball off a paddle; false if the paddle misses it.
    fn bounce(&mut self, paddle: usize, row: usize) -> bool {
        if paddle.abs_diff(row) > 1 {
            return false;
        }
        if row != paddle {
            self.moves_down = row > paddle;
        }
        self.moves_right = !self.moves_right;
        true
    }
}

/// One cell nearer to a row, within the field.
fn towards(paddle: usize, row: usize) -> usize {
    let next = match paddle.cmp(&row) {
        std::cmp::Ordering::Less => paddle + 1,
        std::cmp::Ordering::Equal => paddle,
        std::cmp::Ordering::Greater => paddle - 1,
    };
    next.clamp(PADDLE_MIN, PADDLE_MAX)
}

impl GridRules for GridPong {
    fn channels(&self) -> usize {
        4
    }

    /// The row of the first ball, all but the outer ones.
    fn starts(&self) -> usize {
        PADDLE_MAX
    }

    fn begin(&mut self, start: usize) {
        *self = Self { first_row: start, ..Self::default() };
        self.serve(true);
    }

    fn act(&mut self, action: GridAction) -> (f32, bool) {
        if self.is_over() {
            return (0.0, true);
        }
        match action {
            GridAction::Up => self.own = towards(self.own, 0),
            GridAction::Down => self.own = towards(self.own, LAST),
            GridAction::Stay | GridAction::Left | GridAction::Right | GridAction::Fire => {}
        }
        self.follow();
        self.trail = self.ball;
        let row = self.next_row();
        match (self.moves_right, self.ball.1) {
            (true, column) if column + 1 == LAST => {
                if !self.bounce(self.own, row) {
                    self.opponent_points += 1;
                    self.serve(true);
                    return (-1.0, self.is_over());
                }
                self.ball = (row, column);
            }
            (false, 1) => {
                if !self.bounce(self.opponent, row) {
                    self.own_points += 1;
                    self.serve(false);
                    return (1.0, self.is_over());
                }
                self.ball = (row, 1);
            }
            (true, column) => self.ball = (row, column + 1),
            (false, column) => self.ball = (row, column - 1),
        }
        (0.0, self.is_over())
    }

    fn draw(&self, frame: &mut GridFrame<'_>) {
        for offset in 0..3 {
            frame.put(OWN_PADDLE, self.own - 1 + offset, LAST);
            frame.put(OPPONENT, self.opponent - 1 + offset, 0);
        }
        frame.put(BALL, self.ball.0, self.ball.1);
        frame.put(TRAIL, self.trail.0, self.trail.1);
    }
}
