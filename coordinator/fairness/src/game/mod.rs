//! Cooperative games: a value for each coalition of players.

mod cosine;
mod function;
mod streamed;

pub use cosine::CosineGame;
pub use function::FunctionGame;
pub use streamed::StreamedCosineGame;

/// The coalition S of a game, which players join one by one.
///
/// Estimators go from coalition to coalition by one player at a time, so that a game which can
/// update its value does not have to compute it again.
pub trait Coalition {
    /// The number of players, N; they are 0..N.
    fn players(&self) -> usize;

    /// Empties the coalition.
    fn clear(&mut self);

    /// Adds a player who is not a member.
    fn join(&mut self, player: usize);

    /// U(S).
    fn value(&mut self) -> f64;
}

/// A game whose neighbouring coalitions are valued without a step: with the Gram matrix a step costs O(N) scalars
/// instead of O(N²), and [`value_with`](Game::value_with) O(1).
pub trait Game: Coalition {
    /// Reverts the last [`join`](Coalition::join), exactly.
    fn undo(&mut self);

    /// U(S ∪ {player}) for a player who is not a member.
    fn value_with(&mut self, player: usize) -> f64;

    /// U(S ∖ {player}) for a member.
    fn value_without(&mut self, player: usize) -> f64;
}
