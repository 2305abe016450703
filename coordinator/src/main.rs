//! The coordinator as a program.
fn main() {}
