//! Many trials, with invented results: run, stored, refused and shown.
#![allow(clippy::unwrap_used)]

mod output;
mod paper;
mod record;
mod runner;
mod synthetic_trials;
