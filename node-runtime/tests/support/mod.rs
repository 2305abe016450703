//! What tests of a whole node share.

pub(crate) mod coordinator;
pub(crate) mod process;
