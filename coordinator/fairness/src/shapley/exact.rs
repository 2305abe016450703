//! Shapley values by enumeration.

use crate::{Contributions, FairnessError, game::Game};

/// The most players whose coalitions are enumerated: a million coalitions.
pub const PLAYERS_MAX: usize = 20;

/// Shapley values by enumeration, valuing each coalition once.
///
/// # Formula
/// φᵢ = Σ_{S⊆N∖i} w(|S|)·[U(S∪{i}) − U(S)] with w(s) = s!(N−s−1)!/N!.
///
/// # Errors
/// [`FairnessError::TooManyPlayers`] beyond [`PLAYERS_MAX`].
pub fn exact(game: &mut impl Game) -> Result<Contributions, FairnessError> {
    let players = game.players();
    if players > PLAYERS_MAX {
        return Err(FairnessError::TooManyPlayers { players, most: PLAYERS_MAX });
    }
    let mut values = vec![0.0; 1 << players];
    game.clear();
    value_all(game, 0, 0, &mut values);
    let weights = subset_weights(players);
    let value = |player: usize| {
        let without = (0..values.len()).filter(|coalition| coalition & (1 << player) == 0);
        let marginal = |coalition: usize| values[coalition | (1 << player)] - values[coalition];
        without.map(|coalition| weights[coalition.count_ones() as usize] * marginal(coalition)).sum()
    };
    Ok(Contributions { values: (0..players).map(value).collect(), standard_errors: vec![0.0; players] })
}

/// Values every coalition of `members` (a bit for each player) and players from `next` on.
fn value_all(game: &mut impl Game, members: usize, next: usize, values: &mut [f64]) {
    if next == game.players() {
        values[members] = game.value();
        return;
    }
    value_all(game, members, next + 1, values);
    game.join(next);
    value_all(game, members | (1 << next), next + 1, values);
    game.undo();
}

/// w(s) for s = 0 … N−1: w(0) = 1/N and w(s) = w(s−1)·s/(N−s).
fn subset_weights(players: usize) -> Vec<f64> {
    let mut weight = 1.0 / players as f64;
    (0..players)
        .map(|size| {
            if size > 0 {
                weight *= size as f64 / (players - size) as f64;
            }
            weight
        })
        .collect()
}
