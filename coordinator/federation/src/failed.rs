//! A federation that cannot go on.

use serde::{Deserialize, Serialize};

/// The cause of a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum FailureCause {
    /// The aggregated model is not finite.
    #[error("the model diverged in round {round}; lower training.learning_rate or admission.norm_max")]
    Diverged {
        /// The round whose step was too long.
        round: u32,
    },
}

/// The end after a failure: nothing changes any more, the last good state stays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Failed {
    pub(crate) cause: FailureCause,
}
