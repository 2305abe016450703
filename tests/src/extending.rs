//! The examples of `docs/extending.md`, compiled and run as documentation tests.
#![doc = ""]
#![doc = include_str!("../../docs/extending.md")]
