//! A federation that is done.

use serde::{Deserialize, Serialize};

/// The end: all rounds are done, or the operator said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Finished;
