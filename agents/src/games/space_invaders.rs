//! Space Invaders on the grid.
//!
//! A cannon on the lowest row, and a block of four by six aliens that moves sideways, turns at the walls and comes down one
//! row each time. The fewer aliens are left, the sooner they move again, and each wave moves sooner than the one before.
//! The alien that is nearest to the cannon's column fires; each alien that is shot counts one. The episode is over when a
//! bullet or an alien reaches the cannon, or aliens that stand on the lowest row would have to come down further.

use super::{CellSet, GridAction, GridFrame, GridRules, LAST, SIDE};

const CANNON: usize = 0;
const ALIEN: usize = 1;
const ALIEN_LEFT: usize = 2;
const ALIEN_RIGHT: usize = 3;
const OWN_BULLET: usize = 4;
const ALIEN_BULLET: usize = 5;

/// Steps between two shots of the cannon.
const RELOAD_STEPS: u32 = 5;
/// Steps between two moves of a full wave, at first, and at least.
const MOVE_STEPS: u32 = 12;
const MOVE_STEPS_MIN: u32 = 6;
/// Steps between two shots of the aliens.
const ALIEN_RELOAD_STEPS: u32 = 10;

/// The state of the game.
#[derive(Debug, Clone)]
pub struct GridSpaceInvaders {
    cannon: usize,
    aliens: CellSet,
    aliens_move_right: bool,
    own_bullets: CellSet,
    alien_bullets: CellSet,
    /// Steps between two moves of a full wave.
    move_steps: u32,
    until_move: u32,
    until_alien_shot: u32,
    until_loaded: u32,
    is_over: bool,
}

impl Default for GridSpaceInvaders {
    fn default() -> Self {
        Self {
            cannon: 5,
            aliens: wave(),
            aliens_move_right: false,
            own_bullets: CellSet::default(),
            alien_bullets: CellSet::default(),
            move_steps: MOVE_STEPS,
            until_move: MOVE_STEPS,
            until_alien_shot: ALIEN_RELOAD_STEPS,
            until_loaded: 0,
            is_over: false,
        }
    }
}

fn wave() -> CellSet {
    CellSet::block(0..4, 2..8)
}

impl GridSpaceInvaders {
    fn move_aliens(&mut self) {
        self.until_move = self.aliens.count().min(self.move_steps);
        let wall = if self.aliens_move_right { LAST } else { 0 };
        if self.aliens.has_column(wall) {
            self.aliens_move_right = !self.aliens_move_right;
            self.is_over |= self.aliens.rows[LAST] != 0;
            self.aliens.rows.rotate_right(1);
        } else if self.aliens_move_right {
            self.aliens.rows.iter_mut().for_each(|columns| *columns <<= 1);
        } else {
            self.aliens.rows.iter_mut().for_each(|columns| *columns >>= 1);
        }
    }

    /// The lowest alien of the column that is nearest to the cannon, the left one of two.
    fn nearest_alien(&self) -> Option<(usize, usize)> {
        let columns = (0..SIDE).filter(|column| self.aliens.has_column(*column));
        let column = columns.min_by_key(|column| column.abs_diff(self.cannon))?;
        let row = (0..SIDE).rev().find(|row| self.aliens.has(*row, column))?;
        Some((row, column))
    }

    /// Removes the aliens that are hit, with the bullets; their number.
    fn remove_hit(&mut self) -> u32 {
        let mut hits = 0;
        for (aliens, bullets) in self.aliens.rows.iter_mut().zip(&mut self.own_bullets.rows) {
            let hit = *aliens & *bullets;
            hits += hit.count_ones();
            *aliens &= !hit;
            *bullets &= !hit;
        }
        hits
    }
}

impl GridRules for GridSpaceInvaders {
    fn channels(&self) -> usize {
        6
    }

    fn starts(&self) -> usize {
        1
    }

    fn begin(&mut self, _start: usize) {
        *self = Self::default();
    }

    fn act(&mut self, action: GridAction) -> (f32, bool) {
        if self.is_over {
            return (0.0, true);
        }
        match action {
            GridAction::Fire if self.until_loaded == 0 => {
                self.own_bullets.add(LAST, self.cannon);
                self.until_loaded = RELOAD_STEPS;
            }
            GridAction::Left => self.cannon = self.cannon.saturating_sub(1),
            GridAction::Right => self.cannon = (self.cannon + 1).min(LAST),
            GridAction::Stay | GridAction::Up | GridAction::Down | GridAction::Fire => {}
        }
        self.own_bullets.rows.rotate_left(1);
        self.own_bullets.rows[LAST] = 0;
        self.alien_bullets.rows.rotate_right(1);
        self.alien_bullets.rows[0] = 0;
        self.is_over |= self.alien_bullets.has(LAST, self.cannon) || self.aliens.has(LAST, self.cannon);
        if self.until_move == 0 {
            self.move_aliens();
            self.is_over |= self.aliens.has(LAST, self.cannon);
        }
        if self.until_alien_shot == 0 {
            self.until_alien_shot = ALIEN_RELOAD_STEPS;
            if let Some((row, column)) = self.nearest_alien() {
                self.alien_bullets.add(row, column);
            }
        }
        let hits = self.remove_hit();
        self.until_loaded = self.until_loaded.saturating_sub(1);
        self.until_move = self.until_move.saturating_sub(1);
        self.until_alien_shot = self.until_alien_shot.saturating_sub(1);
        if self.aliens.count() == 0 {
            self.move_steps = self.move_steps.saturating_sub(1).max(MOVE_STEPS_MIN);
            self.aliens = wave();
        }
        (hits as f32, self.is_over)
    }

    fn draw(&self, frame: &mut GridFrame<'_>) {
        frame.put(CANNON, LAST, self.cannon);
        frame.put_all(ALIEN, &self.aliens);
        frame.put_all(if self.aliens_move_right { ALIEN_RIGHT } else { ALIEN_LEFT }, &self.aliens);
        frame.put_all(OWN_BULLET, &self.own_bullets);
        frame.put_all(ALIEN_BULLET, &self.alien_bullets);
    }
}
