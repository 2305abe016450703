//! Shapley values by enumeration.

use crate::fairness::{Contributions, FairnessError, game::Game};

/// The most players whose coalitions are enumerated: 2²⁴ of them.
pub const PLAYERS_MAX: usize = 24;

/// φᵢ by visiting every coalition once.
///
/// Regrouped by coalition, so that each is valued once: U(S) enters φᵢ with weight
/// w(|S|−1) when i is in S and −w(|S|) when not, w(s) = s!(N−s−1)!/N!.
pub fn exact(game: &mut impl Game) -> Result<Contributions, FairnessError> {
    let players = game.players();
    if players > PLAYERS_MAX {
        return Err(FairnessError::TooManyPlayers { players, most: PLAYERS_MAX });
    }
    let mut sums = Sums {
        weights: subset_weights(players),
        members: Vec::with_capacity(players),
        with: vec![0.0; players],
        all: 0.0,
    };
    game.clear();
    visit(game, 0, &mut sums);
    Ok(Contributions {
        values: sums.with.iter().map(|with| with - sums.all).collect(),
        standard_errors: vec![0.0; players],
    })
}

struct Sums {
    weights: Vec<f64>,
    members: Vec<usize>,
    /// Σ_{S∋i} U(S)·(w(|S|−1) + w(|S|)).
    with: Vec<f64>,
    /// Σ_S U(S)·w(|S|).
    all: f64,
}

/// Visits every coalition of the table plus players from `next` on.
fn visit(game: &mut impl Game, next: usize, sums: &mut Sums) {
    if next == game.players() {
        let (worth, size) = (game.worth(), sums.members.len());
        let weight = |size: usize| sums.weights.get(size).copied().unwrap_or(0.0);
        sums.all += worth * weight(size);
        if size > 0 {
            let share = worth * (weight(size - 1) + weight(size));
            for &member in &sums.members {
                sums.with[member] += share;
            }
        }
        return;
    }
    visit(game, next + 1, sums);
    game.join(next);
    sums.members.push(next);
    visit(game, next + 1, sums);
    sums.members.pop();
    game.undo();
}

/// w(s) = s!(N−s−1)!/N! for s = 0 … N−1, by w(0) = 1/N and w(s) = w(s−1)·s/(N−s).
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
