//! Many trials, with invented results: run, stored, refused and shown.
#![allow(clippy::unwrap_used)]

mod compare;
mod output;
mod record;
mod runner;
mod synthetic_trials;
