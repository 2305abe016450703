//! The end after the last round, or by the operator's command.

use serde::{Deserialize, Serialize};

/// The end: nothing changes any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Finished;
