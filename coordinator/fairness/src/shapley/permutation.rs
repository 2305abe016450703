//! Shapley values from random orders of arrival.

use super::replicates::{Effort, average};
use crate::{Contributions, FairnessError, game::Coalition};
use rand::{Rng, seq::SliceRandom};

/// Shapley values estimated from random orders in antithetic pairs.
///
/// # Formula
/// φ̂ᵢ = mean of U(S∪{i}) − U(S) over random orders, S being the players before i.
///
/// Each order is followed by its reverse. In a game whose interactions are of order at most two the
/// pair's mean is exact, and the cosine game of aligned updates is close to that. A sample is an
/// order; an odd count is rounded up to whole pairs, and the standard error is over pairs.
///
/// # Errors
/// [`FairnessError::OutOfRange`] for an effort of no samples.
pub fn permutation<G: Coalition>(
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
            game.clear();
            let mut before = game.value();
            for &player in &order {
                game.join(player);
                let after = game.value();
                values[player] += 0.5 * (after - before);
                before = after;
            }
            order.reverse();
        }
    })
}
