//! What nodes and the coordinator of an Evenhand federation say to each other.
//!
//! Everything here is a value or a pure function: no sockets, no clock, no files. The crate is
//! `no_std` with `alloc`, so that the smallest node can carry it. All lengths that foreign bytes can
//! name are bounded: decoding never panics and never allocates beyond the declared limits.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod bytes;
pub mod chunk;
pub mod codec;
pub mod envelope;
pub mod identity;
pub mod limits;
pub mod message;
pub mod topic;
