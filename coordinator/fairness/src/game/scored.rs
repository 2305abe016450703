//! A game whose worth is what a model scores after it was moved by the coalition's updates only.

use super::{Game, Walk};
use crate::vector::add;

/// U(S) = score(Σ_{i∈S} cᵢΔθᵢ), the score being whatever the caller makes of that update: the
/// negative loss or the accuracy of θ_{t−1} moved by it, on validation data.
pub struct Scored<'a> {
    updates: &'a [&'a [f32]],
    coalition: &'a [f64],
    score: &'a mut dyn FnMut(&[f32]) -> f64,
    seated: Vec<usize>,
    sum: Vec<f64>,
    update: Vec<f32>,
}

impl<'a> Scored<'a> {
    /// The game of these updates, `coalition[i]` = cᵢ.
    pub fn new(
        updates: &'a [&'a [f32]],
        coalition: &'a [f64],
        score: &'a mut dyn FnMut(&[f32]) -> f64,
    ) -> Self {
        let dim = updates.first().map_or(0, |update| update.len());
        Self {
            updates,
            coalition,
            score,
            seated: Vec::with_capacity(updates.len()),
            sum: vec![0.0; dim],
            update: vec![0.0; dim],
        }
    }

    /// The worth of the coalition at the table moved by `sign` times a player's update.
    fn worth_moved(&mut self, player: Option<(usize, f64)>) -> f64 {
        match player {
            None => {
                for (update, sum) in self.update.iter_mut().zip(&self.sum) {
                    *update = *sum as f32;
                }
            }
            Some((player, sign)) => {
                let weight = sign * self.coalition[player];
                let own = self.updates[player];
                for ((update, sum), own) in self.update.iter_mut().zip(&self.sum).zip(own) {
                    *update = (sum + weight * f64::from(*own)) as f32;
                }
            }
        }
        (self.score)(&self.update)
    }
}

impl Walk for Scored<'_> {
    fn players(&self) -> usize {
        self.updates.len()
    }

    fn clear(&mut self) {
        self.seated.clear();
        self.sum.fill(0.0);
    }

    fn join(&mut self, player: usize) {
        self.seated.push(player);
        add(&mut self.sum, self.coalition[player], self.updates[player]);
    }

    fn worth(&mut self) -> f64 {
        self.worth_moved(None)
    }
}

impl Game for Scored<'_> {
    fn undo(&mut self) {
        // Summed afresh: a subtraction would leave rounding errors of larger updates behind.
        self.seated.pop();
        self.sum.fill(0.0);
        for &player in &self.seated {
            add(&mut self.sum, self.coalition[player], self.updates[player]);
        }
    }

    fn worth_with(&mut self, player: usize) -> f64 {
        self.worth_moved(Some((player, 1.0)))
    }

    fn worth_without(&mut self, player: usize) -> f64 {
        self.worth_moved(Some((player, -1.0)))
    }
}
