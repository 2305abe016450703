//! The federation's state machine: scripts with known answers, properties over arbitrary inputs, crashes.
#![allow(clippy::unwrap_used)]

mod admission;
mod command;
mod crash;
mod ending;
mod enrolling;
mod exploiting;
mod exploring;
mod policies;
mod presence;
mod promises;
mod replay;
mod round;
mod running;
mod save;
mod weights;
