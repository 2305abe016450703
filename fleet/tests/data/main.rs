//! Data sets: small files in each published format, broken ones, and the real ones.
#![allow(clippy::unwrap_used)]

mod broken;
mod command;
mod damaged;
mod fixtures;
mod formats;
mod households;
mod real;
mod unusable;
