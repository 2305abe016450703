//! The paper's tables, from the trials of [`crate::experiment`].

pub mod args;
mod command;
pub mod published;
mod tables;

pub use args::{Format, PaperArgs, TableName};
pub use command::run;
pub use tables::{CORRUPTIONS, Scope, plans};

/// How to use the command, by example.
pub const HELP: &str = "\
Examples:
  evenhand-fleet paper fairness --data DIR               all data sets that are in DIR
  evenhand-fleet paper beta --data DIR --dataset mnist   fairness against equality, MNIST
  evenhand-fleet paper all --data DIR --format markdown  everything, for a document

Tables share trials with each other and with `evenhand-fleet experiment` through --out: nothing
is run twice.
In brackets stands what is published, where it is certain.";
