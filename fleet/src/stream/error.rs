use crate::corruption::Corruption;
use crate::data::{Answers, Dataset, Pool};
use crate::experiment::setup::Setup;

/// Why a setup and a data set do not go together.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StreamError {
    /// There is nothing to measure.
    #[error("{} has no samples", dataset.name())]
    Empty {
        /// Which data set.
        dataset: Dataset,
    },
    /// Nobody measures, or nothing.
    #[error("{nodes} nodes with batches of {batch}; both must be at least 1")]
    Nobody {
        /// N.
        nodes: usize,
        /// Samples of a node's batch.
        batch: usize,
    },
    /// ζ is a share.
    #[error("level {level}; it lies between 0 and 1")]
    Level {
        /// What was asked for.
        level: f64,
    },
    /// Each node needs somebody's data.
    #[error("{nodes} nodes, but only {owners} meters have enough readings; lower --nodes")]
    Owners {
        /// N.
        nodes: usize,
        /// Who has data.
        owners: usize,
    },
    /// The corruption is about classes.
    #[error("{} has no classes, which {} is about; choose another --corruption", dataset.name(), corruption.name())]
    NoClasses {
        /// Which data set.
        dataset: Dataset,
        /// What was asked for.
        corruption: Corruption,
    },
    /// A node would see only classes without samples.
    #[error(
        "no sample of class {class} among {taken} of {}; heterogeneity needs some of each: {}",
        dataset.name(),
        more(*dataset, *taken, *recorded)
    )]
    NoSample {
        /// Which data set.
        dataset: Dataset,
        /// Which class.
        class: u32,
        /// How many samples the experiment takes.
        taken: usize,
        /// How many there are.
        recorded: usize,
    },
}

/// How to come by more samples.
fn more(dataset: Dataset, taken: usize, recorded: usize) -> String {
    if taken < recorded {
        format!("take more of its {recorded}, with more --rounds or a larger --batch")
    } else {
        format!("the files hold no more; get all of them from {}", dataset.home())
    }
}

pub(super) fn check(pool: &Pool, setup: &Setup) -> Result<(), StreamError> {
    let Setup { dataset, corruption, nodes, batch, level, .. } = *setup;
    if pool.is_empty() {
        return Err(StreamError::Empty { dataset });
    }
    if nodes == 0 || batch == 0 {
        return Err(StreamError::Nobody { nodes, batch });
    }
    if !(0.0..=1.0).contains(&level) {
        return Err(StreamError::Level { level });
    }
    if let Some(owners) = &pool.owners {
        let owners = owners.iter().filter(|range| !range.is_empty()).count();
        if owners < nodes {
            return Err(StreamError::Owners { nodes, owners });
        }
    }
    if corruption == Corruption::Heterogeneity && matches!(pool.answers, Answers::Values { .. }) {
        return Err(StreamError::NoClasses { dataset, corruption });
    }
    Ok(())
}
