//! The value that is lost without one player.

use crate::{Contributions, game::Game};

/// The value that is lost without each player: N + 1 coalitions instead of 2ᴺ.
///
/// # Formula
/// φᵢ = U(N) − U(N∖{i}). Not a Shapley value (the values need not sum to
/// U(N), and of two equal players who replace each other neither gets anything), but a cheap comparison.
pub fn leave_one_out(game: &mut impl Game) -> Contributions {
    let players = game.players();
    game.clear();
    (0..players).for_each(|player| game.join(player));
    let whole = game.value();
    Contributions {
        values: (0..players).map(|player| whole - game.value_without(player)).collect(),
        standard_errors: vec![0.0; players],
    }
}
