//! Shapley values stratified by coalition size: the paper's estimator.

use super::replicates::{Effort, average};
use crate::{Contributions, FairnessError, game::Game};
use rand::{Rng, seq::SliceRandom};

/// Shapley values stratified by coalition size, the coalitions of a sample coming from one order.
///
/// # Formula
/// φ̂ᵢ = N⁻¹ Σ_{s=0}^{N−1} [U(Sᵢ,ₛ∪{i}) − U(Sᵢ,ₛ)], Sᵢ,ₛ a random coalition of size s without i.
///
/// Departs from the published code in how the coalitions of different sizes and players hang
/// together, not in the law of any one of them. There each Sᵢ,ₛ is drawn by itself; here all of a sample
/// come from one random order of the players: Sᵢ,ₛ is the first s players of the order with i taken
/// out. What is left after taking i out is again a uniform order, so each Sᵢ,ₛ is a uniform coalition
/// of its size and φ̂ᵢ stays unbiased. But Sᵢ,ₛ is now the coalition after s arrivals (when i comes later)
/// or after s + 1 arrivals less i (when i is a member), so one order serves all N² marginals: O(N²)
/// scalars on the Gram matrix instead of O(N⁴). Each order is followed by its reverse, as in
/// [`permutation`](super::permutation); such a pair is about as precise as one independent sample, at a
/// small fraction of its cost (docs/fairness.md).
///
/// A sample is one coalition of each size for each player; an odd count is rounded up to whole pairs,
/// and the standard error is over pairs.
///
/// # Errors
/// [`FairnessError::OutOfRange`] for an effort of no samples.
pub fn stratified<G: Game>(
    game: &mut G,
    effort: Effort,
    rng: &mut impl Rng,
) -> Result<Contributions, FairnessError> {
    let players = game.players();
    let mut order: Vec<usize> = (0..players).collect();
    average(players, effort, 2, |values| {
        values.fill(0.0);
        order.shuffle(rng);
        for _ in 0..2 {
            add_marginals(game, &order, 0.5 / players as f64, values);
            order.reverse();
        }
    })
}

/// Adds `share` times each player's marginals along one order.
fn add_marginals<G: Game>(game: &mut G, order: &[usize], share: f64, values: &mut [f64]) {
    game.clear();
    let mut value = game.value();
    for size in 0..order.len() {
        let (members, waiting) = order.split_at(size);
        for &player in waiting {
            values[player] += share * (game.value_with(player) - value);
        }
        game.join(order[size]);
        value = game.value();
        for &player in members {
            values[player] += share * (value - game.value_without(player));
        }
    }
}

/// The paper's estimator to the letter: every Sᵢ,ₛ is drawn by itself. O(N⁴) scalars on the Gram
/// matrix; for runs that follow the publication.
///
/// # Errors
/// [`FairnessError::OutOfRange`] for an effort of no samples.
pub fn stratified_independent<G: Game>(
    game: &mut G,
    effort: Effort,
    rng: &mut impl Rng,
) -> Result<Contributions, FairnessError> {
    let players = game.players();
    let mut others = Vec::with_capacity(players);
    average(players, effort, 1, |values| {
        let draw = |player: usize, size: usize, coalition: &mut Vec<usize>| {
            others.clear();
            others.extend((0..players).filter(|other| *other != player));
            coalition.extend_from_slice(others.partial_shuffle(rng, size).0);
        };
        values.copy_from_slice(&stratified_with(game, draw));
    })
}

/// φ̂ with coalitions chosen by the caller: `choose(i, s, &mut coalition)` puts Sᵢ,ₛ into an empty list.
pub fn stratified_with<G: Game>(
    game: &mut G,
    mut choose: impl FnMut(usize, usize, &mut Vec<usize>),
) -> Vec<f64> {
    let players = game.players();
    let mut coalition = Vec::with_capacity(players);
    (0..players)
        .map(|player| {
            let marginals = (0..players).map(|size| {
                coalition.clear();
                choose(player, size, &mut coalition);
                game.clear();
                coalition.iter().for_each(|&other| game.join(other));
                let without = game.value();
                game.value_with(player) - without
            });
            marginals.sum::<f64>() / players as f64
        })
        .collect()
}
