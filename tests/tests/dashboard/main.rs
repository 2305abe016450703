//! The dashboard over real sockets: what it serves, to whom, and what it never serves.
#![allow(clippy::unwrap_used)]

mod access;
mod history;
mod live;
mod metrics;
mod openapi;
mod served;
