//! Scenarios that cannot be.

use super::Corruption;
use crate::data::Dataset;

/// A scenario and a data set that do not fit each other.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScenarioError {
    /// No samples.
    #[error("{} has no samples", dataset.name())]
    Empty {
        /// The data set.
        dataset: Dataset,
    },
    /// No nodes, or empty batches.
    #[error("{nodes} nodes with batches of {batch}; both must be at least 1")]
    NoNodes {
        /// N.
        nodes: usize,
        /// Samples of a node's batch.
        batch: usize,
    },
    /// ζ is a share.
    #[error("level {level}; it lies between 0 and 1")]
    Level {
        /// The given level.
        level: f64,
    },
    /// Each node needs an owner of data.
    #[error("{nodes} nodes, but only {owners} meters have enough readings; lower --nodes")]
    Owners {
        /// N.
        nodes: usize,
        /// Owners with data.
        owners: usize,
    },
    /// The corruption is about classes.
    #[error("{} has no classes, which {} is about; choose another --corruption", dataset.name(), corruption.name())]
    NoClasses {
        /// The data set.
        dataset: Dataset,
        /// The corruption.
        corruption: Corruption,
    },
    /// The corruption is about readings with their times.
    #[error(
        "a sample of {} is no series of readings, which {} is about; choose another --corruption",
        dataset.name(), corruption.name()
    )]
    NoSeries {
        /// The data set.
        dataset: Dataset,
        /// The corruption.
        corruption: Corruption,
    },
    /// A node would see only classes without samples.
    #[error(
        "no sample of class {class} among {taken} of {}; heterogeneity needs some of each: {}",
        dataset.name(),
        more(*dataset, *taken, *recorded)
    )]
    NoSample {
        /// The data set.
        dataset: Dataset,
        /// The class.
        class: u32,
        /// Samples that the experiment takes.
        taken: usize,
        /// Samples in the files.
        recorded: usize,
    },
}

/// The way to more samples.
fn more(dataset: Dataset, taken: usize, recorded: usize) -> String {
    if taken < recorded {
        format!("take more of its {recorded}, with more --rounds or a larger --batch")
    } else {
        format!("the files hold no more; get all of them from {}", dataset.home())
    }
}
