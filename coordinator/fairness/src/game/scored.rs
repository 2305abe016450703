//! A game whose value is the score of a model moved by the coalition's updates only.

use super::{Coalition, Game};
use crate::vector::add;

/// U(S) = score(Σ_{i∈S} cᵢΔθᵢ), the score being the caller's: the
/// negative loss or the accuracy of θ_{t−1} moved by it, on validation data.
pub struct ScoredGame<'a> {
    updates: &'a [&'a [f32]],
    coalition: &'a [f64],
    score: &'a mut dyn FnMut(&[f32]) -> f64,
    members: Vec<usize>,
    sum: Vec<f64>,
    update: Vec<f32>,
}

impl<'a> ScoredGame<'a> {
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
            members: Vec::with_capacity(updates.len()),
            sum: vec![0.0; dim],
            update: vec![0.0; dim],
        }
    }

    /// The value of the coalition moved by `sign` times a player's update.
    fn value_moved(&mut self, player: Option<(usize, f64)>) -> f64 {
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

impl Coalition for ScoredGame<'_> {
    fn players(&self) -> usize {
        self.updates.len()
    }

    fn clear(&mut self) {
        self.members.clear();
        self.sum.fill(0.0);
    }

    fn join(&mut self, player: usize) {
        self.members.push(player);
        add(&mut self.sum, self.coalition[player], self.updates[player]);
    }

    fn value(&mut self) -> f64 {
        self.value_moved(None)
    }
}

impl Game for ScoredGame<'_> {
    fn undo(&mut self) {
        // Summed again: a subtraction would leave rounding errors of larger updates behind.
        self.members.pop();
        self.sum.fill(0.0);
        for &player in &self.members {
            add(&mut self.sum, self.coalition[player], self.updates[player]);
        }
    }

    fn value_with(&mut self, player: usize) -> f64 {
        self.value_moved(Some((player, 1.0)))
    }

    fn value_without(&mut self, player: usize) -> f64 {
        self.value_moved(Some((player, -1.0)))
    }
}
