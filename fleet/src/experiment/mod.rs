//! The paper's experiments: one setup, many trials.
//!
//! A [`setup`] (with the settings of the paper in [`published_settings`]) becomes a [`trial`]; the [`runner`] runs the
//! trials that are missing and stores a [`record`] of each; a [`table`] asks them for each [`measure`] and gets an
//! [`estimate`]; [`summary`] is the JSON object and [`page`] the HTML report; [`paper`] has the paper's tables and figures,
//! [`compare`] comparisons of our own. [`worth`] is what nodes' data are worth by retraining, [`rate`] finds the useful
//! learning rate, and [`games`] has agents that learn a game.

mod charts;
pub mod cheat;
pub mod compare;
pub mod comparison;
pub mod details;
pub mod detection;
mod error;
pub mod estimate;
mod federation;
pub mod games;
mod labels;
pub mod measure;
pub mod page;
pub mod paper;
mod pool_cache;
pub mod progress;
pub mod published_figures;
pub mod published_settings;
pub mod rate;
pub mod record;
pub mod runner;
pub mod setup;
pub mod setup_check;
pub mod stop_prediction;
pub mod stored_file;
mod strategies;
pub mod summary;
pub mod table;
pub mod trial;
mod validation;
pub mod variant;
mod workers;
pub mod worth;
pub mod year;

pub use error::ExperimentError;
