//! Worth: Shapley values of nodes by retraining, the ground truth that is not ζ.
//!
//! The players are the nodes of a scenario. A coalition's model is trained on the data of its members
//! ([`training`]) and scored on everybody's clean, held-out samples; coalitions are sampled ([`sampling`]), their
//! scores stored as they come ([`cache`]), and the values of nodes are estimated from them by regression
//! ([`regression`]). [`truth`] is the stored result of one seed, [`run`] makes it, [`figures`] shows several.

pub mod cache;
mod error;
pub mod figures;
mod judges;
pub mod node_set;
pub mod progress;
pub mod regression;
pub mod run;
pub mod sampling;
pub mod settings;
pub mod training;
pub mod truth;

pub use error::WorthError;
