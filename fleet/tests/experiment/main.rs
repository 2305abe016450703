//! Many trials, with a trial that takes no time: what is run, kept, refused and shown.
#![allow(clippy::unwrap_used)]

mod output;
mod paper;
mod record;
mod runner;
mod synthetic_trials;
