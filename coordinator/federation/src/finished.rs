//! The end after the last round.

use serde::{Deserialize, Serialize};

use crate::phase::FederationPhase;

/// The phase after the last round, or after the operator's command.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Finished {
    /// The phase that goes on if more rounds are wanted; none if the operator has ended it.
    pub(crate) resume: Option<Box<FederationPhase>>,
}
