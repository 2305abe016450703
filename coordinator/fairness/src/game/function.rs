//! A game given by a function.

use super::{Coalition, Game};

/// The game of U(S) = `value(is_member)`, `is_member[i]` being true for the players i of S.
///
/// # Example
/// ```
/// use evenhand_fairness::{game::FunctionGame, shapley};
///
/// // One left glove, two right ones; a pair has the value 1.
/// let pairs = |s: &[bool]| f64::from(u8::from(s[0] && (s[1] || s[2])));
/// let found = shapley::exact(&mut FunctionGame::new(3, pairs))?;
/// assert!((found.values[0] - 2.0 / 3.0).abs() < 1e-12);
/// # Ok::<(), evenhand_fairness::FairnessError>(())
/// ```
pub struct FunctionGame<F> {
    value: F,
    is_member: Vec<bool>,
    members: Vec<usize>,
}

impl<F: FnMut(&[bool]) -> f64> FunctionGame<F> {
    /// A game of `players` players.
    pub fn new(players: usize, value: F) -> Self {
        Self { value, is_member: vec![false; players], members: Vec::with_capacity(players) }
    }

    fn value_if(&mut self, player: usize, member: bool) -> f64 {
        self.is_member[player] = member;
        let value = (self.value)(&self.is_member);
        self.is_member[player] = !member;
        value
    }
}

impl<F: FnMut(&[bool]) -> f64> Coalition for FunctionGame<F> {
    fn players(&self) -> usize {
        self.is_member.len()
    }

    fn clear(&mut self) {
        self.is_member.fill(false);
        self.members.clear();
    }

    fn join(&mut self, player: usize) {
        self.is_member[player] = true;
        self.members.push(player);
    }

    fn value(&mut self) -> f64 {
        (self.value)(&self.is_member)
    }
}

impl<F: FnMut(&[bool]) -> f64> Game for FunctionGame<F> {
    fn undo(&mut self) {
        let player = self.members.pop().expect("undo follows a join");
        self.is_member[player] = false;
    }

    fn value_with(&mut self, player: usize) -> f64 {
        self.value_if(player, true)
    }

    fn value_without(&mut self, player: usize) -> f64 {
        self.value_if(player, false)
    }
}
