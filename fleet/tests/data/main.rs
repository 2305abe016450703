//! Data sets: made-up files in each published format, broken ones, and the real ones where they are.
#![allow(clippy::unwrap_used)]

mod broken;
mod command;
mod damaged;
mod fixtures;
mod formats;
mod households;
mod real;
mod unusable;
