//! A scripted coordinator and node processes.

pub(crate) mod coordinator;
pub(crate) mod process;
