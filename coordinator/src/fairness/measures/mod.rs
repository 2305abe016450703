//! What a run reports about itself.

mod pearson;

pub use pearson::pearson;
