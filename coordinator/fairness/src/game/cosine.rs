//! The cosine game of the paper's experiments, on the Gram matrix.

use super::{Coalition, Game};
use crate::gram::Gram;
use crate::vector::vanishes;

/// U(S) = ⟨g_S, g_N⟩ / (‖g_S‖ ‖g_N‖) with g_S = Σ_{i∈S} cᵢΔθᵢ, g_N = Σ pᵢΔθᵢ, U(∅) = 0.
///
/// With aᵢⱼ = cᵢcⱼ⟨Δθᵢ, Δθⱼ⟩ and rᵢ = cᵢ⟨Δθᵢ, g_N⟩: ⟨g_S, g_N⟩ = Σ_S rᵢ and ‖g_S‖² = Σ_{S×S} aᵢⱼ, so
/// no step touches a vector of the model's dimension. cᵢ = pᵢ, or pᵢ² as in the published code.
///
/// A coalition whose updates cancel (‖g_S‖² within single precision of zero) has no direction; its
/// value is 0, as that of the empty one.
pub struct CosineGame {
    players: usize,
    /// aᵢⱼ, row by row.
    products: Vec<f64>,
    /// rᵢ.
    alignment: Vec<f64>,
    /// ‖g_N‖.
    whole: f64,
    members: Vec<usize>,
    /// One level for each member and one for the empty coalition, so that `undo` is exact.
    levels: Vec<Level>,
    /// Row l: Σ_{j∈S} aᵢⱼ for every i, at level l.
    toward: Vec<f64>,
    /// Row l: ‖g_{S∖i}‖² for every i in S, at level l. Carried along rather than subtracted from
    /// ‖g_S‖², which would cancel when player i is much larger than the others together.
    without: Vec<f64>,
}

#[derive(Clone, Copy, Default)]
struct Level {
    /// ⟨g_S, g_N⟩.
    aligned: f64,
    /// ‖g_S‖².
    square: f64,
    /// Σ_{i∈S} aᵢᵢ, the scale against which ‖g_S‖² is or is not zero.
    mass: f64,
}

impl CosineGame {
    /// The game of the updates whose Gram matrix this is: `coalition[i]` = cᵢ, `weights[i]` = pᵢ.
    pub fn new(gram: &Gram, weights: &[f64], coalition: &[f64]) -> Self {
        let players = gram.size();
        let scaled = |i: usize| gram.row(i).iter().zip(coalition).map(move |(g, c)| coalition[i] * c * g);
        let products = (0..players).flat_map(scaled).collect();
        let against_all: Vec<f64> =
            (0..players).map(|i| gram.row(i).iter().zip(weights).map(|(g, p)| p * g).sum()).collect();
        let square: f64 = weights.iter().zip(&against_all).map(|(p, r)| p * r).sum();
        let mass: f64 = (0..players).map(|i| weights[i] * weights[i] * gram.get(i, i)).sum();
        let rows = players * (players + 1);
        Self {
            players,
            products,
            alignment: coalition.iter().zip(&against_all).map(|(c, r)| c * r).collect(),
            whole: if vanishes(square, mass) { 0.0 } else { square.sqrt() },
            members: Vec::with_capacity(players),
            levels: vec![Level::default(); players + 1],
            toward: vec![0.0; rows],
            without: vec![0.0; rows],
        }
    }

    fn level(&self) -> Level {
        self.levels[self.members.len()]
    }

    fn square_of(&self, player: usize) -> f64 {
        self.products[player * self.players + player]
    }

    fn cosine(&self, aligned: f64, square: f64, mass: f64) -> f64 {
        value(aligned, square, mass, self.whole)
    }
}

/// U(S) from ⟨g_S, g_N⟩, ‖g_S‖², Σ_{i∈S} aᵢᵢ and ‖g_N‖.
pub(super) fn value(aligned: f64, square: f64, mass: f64, whole: f64) -> f64 {
    if whole == 0.0 || vanishes(square, mass) { 0.0 } else { aligned / (square.sqrt() * whole) }
}

impl Coalition for CosineGame {
    fn players(&self) -> usize {
        self.players
    }

    fn clear(&mut self) {
        self.members.clear();
    }

    fn join(&mut self, player: usize) {
        let (n, depth) = (self.players, self.members.len());
        let row = &self.products[player * n..(player + 1) * n];
        let (own, before) = (row[player], self.levels[depth]);

        let (now, next) = self.toward[depth * n..(depth + 2) * n].split_at_mut(n);
        let pull = now[player];
        for ((next, now), product) in next.iter_mut().zip(&*now).zip(row) {
            *next = now + product;
        }

        let (now, next) = self.without[depth * n..(depth + 2) * n].split_at_mut(n);
        for &other in &self.members {
            next[other] = now[other] + 2.0 * (pull - row[other]) + own;
        }
        next[player] = before.square;

        self.levels[depth + 1] = Level {
            aligned: before.aligned + self.alignment[player],
            square: before.square + 2.0 * pull + own,
            mass: before.mass + own,
        };
        self.members.push(player);
    }

    fn value(&mut self) -> f64 {
        let Level { aligned, square, mass } = self.level();
        self.cosine(aligned, square, mass)
    }
}

impl Game for CosineGame {
    fn undo(&mut self) {
        self.members.pop();
    }

    fn value_with(&mut self, player: usize) -> f64 {
        let Level { aligned, square, mass } = self.level();
        let pull = self.toward[self.members.len() * self.players + player];
        let own = self.square_of(player);
        self.cosine(aligned + self.alignment[player], square + 2.0 * pull + own, mass + own)
    }

    fn value_without(&mut self, player: usize) -> f64 {
        let Level { aligned, mass, .. } = self.level();
        let square = self.without[self.members.len() * self.players + player];
        self.cosine(aligned - self.alignment[player], square, mass - self.square_of(player))
    }
}
