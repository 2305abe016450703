//! The federation's state machine: scripts with known answers, properties over arbitrary inputs, crashes.
#![allow(clippy::unwrap_used)]

mod crash;
mod policies;
mod properties;
mod replay;
mod script;
mod world;
