//! Federated reinforcement learning, as in the paper: agents that learn one game together.
//!
//! A [`GameSetup`] becomes a trial ([`run`]), whose [`GameRecord`] is stored; [`GameTable`] has the means over trials beside
//! the published ones, and `page` is the HTML report. The coordinator, the nodes' cores and the strategies are the
//! product's; only the environments, what makes agents differ, and the evaluator belong to the laboratory.

mod engine;
mod federation;
pub mod page;
mod picture;
mod published;
mod record;
mod runner;
mod setup;
mod table;
mod trial;

pub use engine::{GameEngine, GameSource};
pub use picture::GamePicture;
pub use published::published_cell;
pub use record::{GameRecord, GameRecordError};
pub use runner::{GameProgress, GameRunner};
pub use setup::GameSetup;
pub use table::{GameTable, strategies as published_strategies};
pub use trial::{GameRound, OnGameRound, run};
