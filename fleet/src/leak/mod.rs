//! Reconstruction of readings from updates: what an observer of a node's messages can compute.
//!
//! The observer knows the model, its weights before the update, the number of samples, the times, the rules of training, and
//! other households ("the public"). [`attack`] searches the readings whose update is the one that was seen: by a linear
//! system where the first layer is dense (`span`), and by Gauss-Newton from there, from the public guess and from random
//! starts (`least_squares`). What was recovered is compared with the truth and with guessing from the public alone.

mod attack;
mod batches;
mod error;
mod figures;
mod least_squares;
mod network;
mod problem;
mod public;
mod span;
mod victim;

#[cfg(test)]
mod tests;

pub use attack::{AttackEffort, attack};
pub use error::LeakError;
pub use figures::{LeakFigures, LeakRow, run};
pub use least_squares::{SearchEffort, Solution};
pub use network::{AttackedBatch, AttackedLoss, AttackedNetwork, Derivative};
pub use problem::{LeakProblem, PublicGuess, SampleLayout, SeenUpdate, ValueSlot};
pub use victim::{AttackedModel, LeakSettings, SeenKind};
