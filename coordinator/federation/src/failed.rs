//! A federation that cannot go on.

use serde::{Deserialize, Serialize};

/// Why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum FailureCause {
    /// The aggregated model is not finite.
    #[error("the model diverged in round {round}; lower training.learning_rate or admission.norm_max")]
    Diverged {
        /// The round whose step was too far.
        round: u32,
    },
}

/// The end after a failure: nothing moves any more, the last good state is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Failed {
    pub(super) cause: FailureCause,
}
