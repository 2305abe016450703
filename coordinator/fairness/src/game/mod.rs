//! Cooperative games: a worth for each coalition of players.

mod cosine;
mod rule;
mod scored;
mod streamed;

pub use cosine::Cosine;
pub use rule::Rule;
pub use scored::Scored;
pub use streamed::StreamedCosine;

/// A game into which players come one by one, and the coalition that sits at its table.
///
/// Estimators walk from coalition to coalition by one player at a time, so that a game which can
/// update its worth does not have to compute it afresh.
pub trait Walk {
    /// How many players there are, N; they are 0..N.
    fn players(&self) -> usize;

    /// Empties the table.
    fn clear(&mut self);

    /// Seats a player who is not at the table.
    fn join(&mut self, player: usize);

    /// U(S) of the coalition S at the table.
    fn worth(&mut self) -> f64;
}

/// A game that can also be looked at aside: with the Gram matrix a step costs O(N) scalars instead of
/// O(N²), and a look ([`worth_with`](Game::worth_with)) O(1).
pub trait Game: Walk {
    /// Takes back the last [`join`](Walk::join), exactly.
    fn undo(&mut self);

    /// U(S ∪ {player}) for a player who is not at the table.
    fn worth_with(&mut self, player: usize) -> f64;

    /// U(S ∖ {player}) for a player at the table.
    fn worth_without(&mut self, player: usize) -> f64;
}
