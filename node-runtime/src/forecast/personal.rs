//! Training of the personal part of a model.

use evenhand_models::Sgd;

/// A day's training of the personal part, on rows of the last 30 days.
pub const PERSONAL_TRAINING: Sgd = Sgd { epochs: 10, learning_rate: 0.01, momentum: 0.9, batch_size: None };

/// Rows of a day's training of the personal part, at most.
pub const PERSONAL_ROWS_MAX: usize = 512;
