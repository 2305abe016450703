//! Errors of an attack.

use evenhand_models::ModelError;

/// Reason why an attack cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum LeakError {
    /// The shipped file is not the network that the attack knows.
    #[error("the model has {found} weights, and the attacked network {wanted}; choose another --model")]
    Weights {
        /// Of the attacked network.
        wanted: usize,
        /// Of the file.
        found: usize,
    },
    /// Too few households to attack some and know others.
    #[error("{0} households are too few; at least two more than --victims are needed")]
    Households(usize),
    /// The readings do not suffice for a batch.
    #[error("no household has readings for a batch of {0} samples; choose fewer --samples")]
    Readings(usize),
    /// The model cannot be trained.
    #[error(transparent)]
    Model(#[from] ModelError),
}
