//! Shapley values stratified by coalition size: the paper's estimator.

use super::replicates::{Effort, average};
use crate::fairness::{Contributions, FairnessError, game::Game};
use rand::{Rng, seq::SliceRandom};

/// φ̂ᵢ = N⁻¹ Σ_{s=0}^{N−1} [U(Sᵢ,ₛ∪{i}) − U(Sᵢ,ₛ)], Sᵢ,ₛ a random coalition of size s without i.
///
/// Departs from the published code in how the coalitions of different sizes and players hang
/// together, not in the law of any one of them. There each Sᵢ,ₛ is drawn afresh; here all of a sample
/// come from one random order of the players: Sᵢ,ₛ is the first s players of the order with i taken
/// out. That order is again uniform, so each Sᵢ,ₛ is a uniform coalition of its size and φ̂ᵢ stays
/// unbiased. But it is the table after s arrivals (when i comes later) or after s + 1 arrivals
/// without i (when i is there): one walk serves all N² marginals, O(N²) scalars on the Gram
/// matrix instead of O(N⁴), and at equal cost far more samples are averaged than lost to the dependence.
///
/// A sample is one coalition of each size for each player.
pub fn stratified<G: Game>(
    game: &mut G,
    effort: Effort,
    rng: &mut impl Rng,
) -> Result<Contributions, FairnessError> {
    let players = game.players();
    let mut order: Vec<usize> = (0..players).collect();
    average(players, effort, 1, |values| {
        order.shuffle(rng);
        walk(game, &order, values);
    })
}

fn walk<G: Game>(game: &mut G, order: &[usize], values: &mut [f64]) {
    values.fill(0.0);
    let share = 1.0 / order.len() as f64;
    game.clear();
    let mut before = game.worth();
    for size in 0..order.len() {
        let (seated, waiting) = order.split_at(size);
        for &player in waiting {
            // The next to come is valued here too: for it both readings of Sᵢ,ₛ are the same.
            values[player] += share * (game.worth_with(player) - before);
        }
        game.join(order[size]);
        before = game.worth();
        for &player in seated {
            values[player] += share * (before - game.worth_without(player));
        }
    }
}

/// The paper's estimator to the letter: every Sᵢ,ₛ is drawn by itself. O(N⁴) scalars on the Gram
/// matrix; for runs that follow the publication.
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
                let without = game.worth();
                game.worth_with(player) - without
            });
            marginals.sum::<f64>() / players as f64
        })
        .collect()
}
