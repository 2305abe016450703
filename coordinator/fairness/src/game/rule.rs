//! A game given by any rule that puts a worth on a coalition.

use super::{Game, Walk};

/// The game whose worth is `worth(members)`, `members[i]` saying whether player i is in.
pub struct Rule<F> {
    worth: F,
    members: Vec<bool>,
    seated: Vec<usize>,
}

impl<F: FnMut(&[bool]) -> f64> Rule<F> {
    /// A game of `players` players.
    pub fn new(players: usize, worth: F) -> Self {
        Self { worth, members: vec![false; players], seated: Vec::with_capacity(players) }
    }

    fn worth_if(&mut self, player: usize, member: bool) -> f64 {
        self.members[player] = member;
        let worth = (self.worth)(&self.members);
        self.members[player] = !member;
        worth
    }
}

impl<F: FnMut(&[bool]) -> f64> Walk for Rule<F> {
    fn players(&self) -> usize {
        self.members.len()
    }

    fn clear(&mut self) {
        self.members.fill(false);
        self.seated.clear();
    }

    fn join(&mut self, player: usize) {
        self.members[player] = true;
        self.seated.push(player);
    }

    fn worth(&mut self) -> f64 {
        (self.worth)(&self.members)
    }
}

impl<F: FnMut(&[bool]) -> f64> Game for Rule<F> {
    fn undo(&mut self) {
        let player = self.seated.pop().expect("undo follows a join");
        self.members[player] = false;
    }

    fn worth_with(&mut self, player: usize) -> f64 {
        self.worth_if(player, true)
    }

    fn worth_without(&mut self, player: usize) -> f64 {
        self.worth_if(player, false)
    }
}
