//! Meters on serial lines and TCP, with the bytes that they send.
#![allow(clippy::unwrap_used)]

mod d0;
mod http;
mod line;
mod modbus;
mod p1;
mod sml;
mod sunspec;
