//! Cooperative games: a worth for each coalition of players.

mod cosine;
mod rule;
mod scored;

pub use cosine::Cosine;
pub use rule::Rule;
pub use scored::Scored;

/// A game, and the coalition that sits at its table.
///
/// Estimators walk from coalition to coalition by one player at a time, so that a game which can
/// update its worth does not have to compute it afresh: with the Gram matrix a step costs O(N)
/// scalars instead of O(N²), and a look aside ([`worth_with`](Game::worth_with)) O(1).
pub trait Game {
    /// How many players there are, N; they are 0..N.
    fn players(&self) -> usize;

    /// Empties the table.
    fn clear(&mut self);

    /// Seats a player who is not at the table.
    fn join(&mut self, player: usize);

    /// Takes back the last [`join`](Game::join), exactly.
    fn undo(&mut self);

    /// U(S) of the coalition S at the table.
    fn worth(&mut self) -> f64;

    /// U(S ∪ {player}) for a player who is not at the table.
    fn worth_with(&mut self, player: usize) -> f64;

    /// U(S ∖ {player}) for a player at the table.
    fn worth_without(&mut self, player: usize) -> f64;
}
