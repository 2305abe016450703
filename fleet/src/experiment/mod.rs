//! The paper's experiments: one setup, many trials.
//!
//! Flags ([`args`]) make setups ([`setup`], with the settings of the paper in [`published`]); the [`runner`] runs the
//! trials that are missing and keeps a [`record`] of each; a [`table`] asks them for each [`measure`] and gets an
//! [`estimate`]; [`summary`] is the JSON object and [`page`] the HTML report.

pub mod args;
mod charts;
pub mod command;
pub mod contender;
pub mod estimate;
pub mod measure;
pub(crate) mod names;
pub mod page;
pub mod progress;
pub mod published;
pub mod record;
pub mod runner;
pub mod setup;
mod shelf;
pub mod summary;
pub mod table;
pub mod trial;

pub use args::ExperimentArgs;
pub use command::run;

/// How to use the command, by example.
pub const HELP: &str = "\
Examples:
  evenhand-fleet experiment                              all strategies, made-up data
  evenhand-fleet experiment --dataset mnist --data DIR   MNIST with feature noise
  evenhand-fleet experiment --dataset mnist --data DIR --corruption label-noise \\
      --strategy evenhand,evenhand-credit,fedavg --trials 10

Every finished trial is a file in --out: Ctrl-C loses only the trials under way, and the same
command goes on.
Figures are means ± standard errors over trials; – is what a strategy does not have.";
