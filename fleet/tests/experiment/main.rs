//! Many trials, with a trial that takes no time: what is run, kept, refused and shown.
#![allow(clippy::unwrap_used)]

mod made_up;
mod paper;
mod record;
mod runner;
mod shown;
