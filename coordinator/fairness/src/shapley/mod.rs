//! Shapley values of any [`Game`](super::game::Game), exactly or by sampling.
//!
//! φᵢ = Σ_{S⊆N∖i} |S|!(N−|S|−1)!/N! · [U(S∪{i}) − U(S)]: what player i adds, averaged over the orders
//! in which the players may join.

mod estimator;
mod exact;
mod leave_one_out;
mod permutation;
mod replicates;
mod stratified;

pub use estimator::Estimator;
pub use exact::{PLAYERS_MAX, exact};
pub use leave_one_out::leave_one_out;
pub use permutation::permutation;
pub use replicates::Effort;
pub use stratified::{stratified, stratified_independent, stratified_with};
